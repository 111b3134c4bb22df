// Loaded before a program that would listen on all interfaces, to restrict it to loopback.
import { Server } from 'node:net';

const { listen } = Server.prototype;

Server.prototype.listen = function (first, ...rest) {
  const callback = rest.findLast((argument) => typeof argument === 'function');
  const port = typeof first === 'object' && first !== null ? first.port : first;
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, callback);
};
