import '../../kit/web/tokens.css';
import '../../kit/web/base.css';

import { renderApplication } from '../../kit/web/app/application.tsx';
import { frame, pages } from './app.tsx';

renderApplication({ basename: '/dashboard', home: '/chains', frame, pages });
