/** Has the browser save a text as a file. */
export function download(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  // Some browsers read it after the click has returned.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
