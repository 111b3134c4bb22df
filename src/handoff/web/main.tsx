import '../../kit/web/tokens.css';
import '../../kit/web/base.css';

import { renderApplication } from '../../kit/web/app/application.tsx';
import { currentKey, keyRefused } from '../../kit/web/app/session.ts';
import { Console, pages } from './app.tsx';
import { startSession } from './data/sign-in.ts';

// The service answers nothing without a key or a session, so it is not asked.
if (currentKey() === null && !startSession()) keyRefused();

renderApplication({ basename: '/console', frame: <Console />, pages });
