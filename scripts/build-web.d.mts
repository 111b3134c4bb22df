/** The files and folders whose changes cause a build of the pages of a service. */
export function sourcesOf(service: string): string[];
