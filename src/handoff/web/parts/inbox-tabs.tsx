import { PageTabs } from '../../../kit/web/components/layout.tsx';

/** The links between open questions and the person's own answers. */
export const InboxTabs = () => (
  <PageTabs
    label="Inbox"
    tabs={[
      { to: '/inbox', label: 'Open questions', end: true },
      { to: '/inbox/answers', label: 'My answers' },
    ]}
  />
);
