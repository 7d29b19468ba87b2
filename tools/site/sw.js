// Keeps the matcher and what it links to, so that they work without a network. A new build has a new version.
"use strict";
const VERSION = "__VERSION__";
const FILES = ["__FILES__"];

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(VERSION)
      .then((cache) => cache.addAll(FILES))
      .then(() => self.skipWaiting()),
  );
});
self.addEventListener("activate", (event) => {
  const old = caches.keys().then((names) => names.filter((name) => name !== VERSION));
  event.waitUntil(old.then((names) => Promise.all(names.map((name) => caches.delete(name)))).then(() => self.clients.claim()));
});
self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== location.origin) return;
  const kept = () => caches.match(event.request, { ignoreSearch: true });
  // Pages and data are fetched anew where there is a network; Python itself never changes within a version.
  const first = /\/(pyodide\/|python\.zip)/.test(event.request.url)
    ? kept().then((found) => found ?? fetch(event.request))
    : fetch(event.request).catch(async () => (await kept()) ?? Response.error());
  event.respondWith(first);
});
