import { readFileSync } from 'node:fs';

/** Ticks of `/proc` in a second, which Linux fixes at 100 for programs. */
const ticks = 100;

/**
 * The processor time of this process so far, in seconds, with that of the programs that it started and that have ended. Where
 * there is no `/proc`, the programs are not counted.
 */
export function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + secondsOfEnded();
}

/** `cutime` and `cstime` of proc(5): the 16th and 17th value, of which the second, the name in parentheses, may have spaces. */
function secondsOfEnded(): number {
  try {
    const values = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)!.split(' ');
    return (Number(values[13]) + Number(values[14])) / ticks;
  } catch {
    return 0;
  }
}
