import type { ExportFormat, GatewayFormat, ImportFormat } from '../../model/targets.ts';
import { exportAiSdk } from './ai-sdk/export.ts';
import { exportBaton } from './baton/export.ts';
import { importBaton } from './baton/import.ts';
import { exportBifrost } from './bifrost/export.ts';
import { exportEnvoy } from './envoy-ai-gateway/export.ts';
import type { RehearsedGateway } from './gateway.ts';
import { exportLangchain } from './langchain/export.ts';
import { exportLitellm } from './litellm/export.ts';
import { litellmGateway } from './litellm/gateway.ts';
import { importLitellm } from './litellm/import.ts';
import { exportOpenrouter } from './openrouter/export.ts';
import { exportPortkey } from './portkey/export.ts';
import { portkeyGateway } from './portkey/gateway.ts';
import { importPortkey } from './portkey/import.ts';
import type { Importer } from './section.ts';
import type { Exporter } from './target.ts';

/** The exporter of each target in `model/targets.ts`. */
export const exporters: Readonly<Record<ExportFormat, Exporter>> = {
  litellm: exportLitellm,
  portkey: exportPortkey,
  openrouter: exportOpenrouter,
  langchain: exportLangchain,
  'ai-sdk': exportAiSdk,
  bifrost: exportBifrost,
  'envoy-ai-gateway': exportEnvoy,
  json: exportBaton,
  yaml: exportBaton,
};

/** The importer of each target whose files can be imported. */
export const importers: Readonly<Record<ImportFormat, Importer>> = {
  litellm: importLitellm,
  portkey: importPortkey,
  json: importBaton,
  yaml: importBaton,
};

/** How each gateway is rehearsed. */
export const gateways: Readonly<Record<GatewayFormat, RehearsedGateway>> = {
  litellm: litellmGateway,
  portkey: portkeyGateway,
};
