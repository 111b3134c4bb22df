import type { ComponentType } from 'react';
import { useParams } from 'react-router';

/** The page of the resource that the address names by `:id`. It is mounted anew for another id, so that nothing of one is shown for another. */
export const byId = (Page: ComponentType<{ id: string }>): ComponentType =>
  function ById() {
    const { id = '' } = useParams();
    return <Page key={id} id={id} />;
  };
