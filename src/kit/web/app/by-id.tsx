import { type ComponentType, createElement } from 'react';
import { useParams } from 'react-router';

/** The page of the resource that the address names by `:id`. It begins anew for another id, so that nothing of one is shown for another. */
export const byId = (page: ComponentType<{ id: string }>): ComponentType =>
  function ById() {
    const { id = '' } = useParams();
    return createElement(page, { key: id, id });
  };
