# Both services in one image. The default command is the handoff service; for the fallback service use
# `bin/fallback-service.js serve --host 0.0.0.0`.
FROM node:26-bookworm-slim AS build
WORKDIR /build
COPY . .
# The image has its own Node, so the packaged one is removed.
RUN node scripts/setup.mjs \
 && npm run build \
 && npm prune --omit=dev --no-audit --no-fund \
 && rm -rf node_modules/node node_modules/node-bin-* node_modules/.bin/node node_modules/.cache

FROM node:26-bookworm-slim
# With its default number of arenas, glibc keeps several hundred megabytes of freed memory after a peak.
ENV MALLOC_ARENA_MAX=2 \
    NODE_ENV=production \
    NODE_COMPILE_CACHE=/tmp/node-compile-cache \
    SERVICE_LOG_FORMAT=json \
    SERVICE_DRAIN_SECONDS=5
WORKDIR /app
COPY --from=build --chown=root:root /build/package.json ./package.json
COPY --from=build --chown=root:root /build/bin ./bin
COPY --from=build --chown=root:root /build/dist ./dist
COPY --from=build --chown=root:root /build/openapi ./openapi
COPY --from=build --chown=root:root /build/node_modules ./node_modules
# A named volume mounted here keeps this owner, so that the service can write its SQLite file.
RUN install -d -o node -g node -m 0700 /app/data
USER node
VOLUME /app/data
EXPOSE 8080 8000
STOPSIGNAL SIGTERM
# PORT is the port that the container's service listens on; /ready answers 503 while its database is unavailable.
ENV PORT=8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node"]
CMD ["bin/service-cli.js", "serve"]
