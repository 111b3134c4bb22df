import Theme from 'vitepress/theme';
import './site.css';

// biome-ignore lint/style/noDefaultExport: VitePress takes the default export.
export default Theme;
