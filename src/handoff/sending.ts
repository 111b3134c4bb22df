import packageJson from '../../package.json' with { type: 'json' };
import { parseAllowList } from '../kit/outgoing/addresses.ts';
import { createGuard } from '../kit/outgoing/guard.ts';
import { Outgoing } from '../kit/outgoing/outgoing.ts';
import type { Turns } from '../kit/turns.ts';
import { createPostToCallback } from './jobs/callbacks.ts';
import { Mailer } from './jobs/mail.ts';
import { manyAttempts } from './jobs/receivers.ts';
import type { Base } from './main.ts';
import { createBriefService } from './service/brief.ts';
import type { ServiceDependencies } from './service/dependencies.ts';
import { createOccurrenceService } from './service/occurrences.ts';
import type { PacketViews } from './service/packet-views.ts';
import { createPushService } from './service/pushes.ts';
import { createSubscriptionService } from './service/subscriptions.ts';
import { createWebhookService } from './service/webhooks.ts';

interface SendingDependencies extends ServiceDependencies {
  views: PacketViews;
  turns: Turns;
}

/** Wires what sends to addresses of callers: requests and mails, behind one guard, and the operations on webhooks and subscriptions. */
export function createSending({ settings, dependencies, tracer }: Base, parts: SendingDependencies) {
  const { outgoing: network } = dependencies;
  const { smtpUrl: url, mailFrom: from, webhookSecretOverlapSeconds: overlapSeconds } = settings;
  const guard = createGuard({ allow: parseAllowList(settings.webhookAllow), setting: 'SERVICE_WEBHOOK_ALLOW', ...network });
  const outgoing = new Outgoing({ guard, connectionsPerOrigin: manyAttempts, tracer, ...network });
  const post = createPostToCallback(outgoing, `${packageJson.name}/${packageJson.version}`);
  const occurrences = createOccurrenceService({ ...parts, brief: createBriefService(parts.views) });
  const urlProblem = guard.problem;
  return {
    urlProblem,
    outgoing,
    mailer: url === undefined || from === undefined ? undefined : new Mailer({ url, from, guard, ca: network?.ca }),
    occurrences,
    subscriptions: createSubscriptionService({ ...parts, urlProblem, occurrences, post, overlapSeconds }),
    pushes: createPushService({ ...parts, urlProblem }),
    webhooks: createWebhookService({ ...parts, urlProblem, overlapSeconds }),
  };
}
