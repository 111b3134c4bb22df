/** A source of numbers from 0 up to but not including 1. */
export type Random = () => number;

/** A deterministic source (SplitMix32): its numbers only depend on the seeds. */
export function seeded(...seeds: number[]): Random {
  let state = 0;
  for (const seed of seeds) state = mix((state + 0x9e3779b9 + (seed >>> 0)) | 0);
  return () => {
    state = (state + 0x9e3779b9) | 0;
    return (mix(state) >>> 0) / 4_294_967_296;
  };
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return mixed ^ (mixed >>> 15);
}
