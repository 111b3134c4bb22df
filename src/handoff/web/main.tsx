import '../../kit/web/tokens.css';
import '../../kit/web/base.css';

import { renderApplication } from '../../kit/web/app/application.tsx';
import { currentKey, keyRefused } from '../../kit/web/app/session.ts';
import { Console, pages } from './app.tsx';

// The service answers nothing without a key, so it is not asked.
if (currentKey() === null) keyRefused();

renderApplication({ basename: '/console', frame: <Console />, pages });
