/** What a rehearsal prints, as the README shows it. */
export const rehearsalExample = `         scene                                   the chain says     the gateway did
same     rate_limit at gpt-4o, lasting           gpt-4o x2, claude  gpt-4o x2, claude
DIFFERS  quota_exceeded at gpt-4o, lasting       gpt-4o, claude     gpt-4o x2, claude
same     server_error at gpt-4o, recovering      gpt-4o x2          gpt-4o x2
...
- gpt-4o answers 429 (quota_exceeded): the chain does not retry and goes to claude; the gateway called gpt-4o 2 times and claude once.
    explained: Portkey sees only status 429 of gpt-4o, so it treats quota_exceeded like rate_limit.
12 of 15 scenes agree, 3 differ.`;
