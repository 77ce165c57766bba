// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The search of pages that are read from a folder. Browsers give file:// neither requests nor workers: the index comes as a script
// (search/search_index.js, which build.cmake writes), and what the theme runs in a worker runs in a hidden frame.
if (location.protocol === "file:") {
  const root = document.currentScript.src.replace(/search\.js$/, "");
  document.write(`<script src="${root}search/search_index.js"><\/script>`);

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...urls) => urls.reduce((all, one) => all.then(() => this.load(one)), Promise.resolve());
      this.ready = this.load(new URL(url, location.href).href);
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: failed });
        this.inside.document.head.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
  };
}
