/** The variables that the commands of `service-cli` read, with their descriptions. */
export const clientVariables = {
  SERVICE_URL: 'The base URL of the API; `--server-url` takes precedence.',
  SERVICE_API_KEY: 'The API key; `--api-key` takes precedence.',
  SERVICE_WEBHOOK_SECRET:
    'The secret for `hooks create`, and for `hooks update --secret` without a value; `--secret TEXT` takes precedence. Unlike a flag, it does not appear in the list of processes. The service does not read it.',
  SERVICE_CHANNEL_TARGET:
    'The target for `channels create`; `--target TEXT` takes precedence. The URL of a Slack webhook is a secret, and flags appear in the list of processes.',
  SERVICE_LEASE_TOKEN:
    "The token of the packet's lease, for commands with `--token`, which takes precedence. Unlike a flag, it does not appear in the list of processes.",
} as const;
