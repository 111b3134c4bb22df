import { channelEvents, channelKinds } from '../model/constants.ts';
import { done, list, one } from './output/show.ts';
import * as view from './output/views.ts';
import { type Row, row, several } from './rows.ts';

/** The commands of channels. */
export const channels: readonly Row[] = [
  row('listChannels', { name: 'channels list', text: 'list the channels', show: list(view.channelColumns, 'channels') }),
  row('createChannel', {
    name: 'channels create',
    text: 'create a channel that notifies people of questions',
    flags: [
      { flags: '--kind <kind>', text: 'how it notifies them', choices: channelKinds, required: true },
      {
        flags: '--target <target>',
        text: 'a mail address, or the URL of an incoming webhook of Slack; SERVICE_CHANNEL_TARGET keeps it out of the process list',
        required: true,
        // A mail address is none.
        secret: { what: 'a target', variable: 'SERVICE_CHANNEL_TARGET', isSecret: (target) => target.includes('://') },
      },
      { flags: '--name <name>', text: 'what it is called' },
      {
        flags: '--responder <name>',
        text: 'the person whose questions it gets, and in whose name its links answer (default: all questions)',
      },
      { flags: '--sign-in', text: 'the pages of its links ask for a sign-in', field: 'sign_in' },
      {
        flags: '--event <event>',
        text: `the events it sends (repeatable; default: asked and reminded): ${channelEvents.join(', ')}`,
        field: 'events',
        completion: channelEvents,
        parse: several,
      },
    ],
    show: one(view.channelLines),
  }),
  row('testChannel', { name: 'channels test', text: 'send a test message', show: done('The test message is queued.') }),
  row('deleteChannel', { name: 'channels delete', text: 'remove a channel', show: done('The channel is removed.') }),
];
