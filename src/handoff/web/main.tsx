import '../../kit/web/tokens.css';
import '../../kit/web/base.css';

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { currentKey, keyRefused } from '../../kit/web/app/session.ts';
import { App } from './app.tsx';

// The service answers nothing without a key, so it is not asked.
if (currentKey() === null) keyRefused();

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
