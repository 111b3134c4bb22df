import { PageTabs } from '../../../kit/web/components/layout.tsx';

/** The links between open questions and the person's own answers. */
export const InboxTabs = () => (
  <PageTabs
    label="Inbox"
    links={[
      { to: '/inbox', label: 'Open questions' },
      { to: '/inbox/answers', label: 'My answers' },
    ]}
  />
);
