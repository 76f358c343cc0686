// Browsers start no worker from the file system. There, a hidden frame does a worker's work, so that search needs no server.
// Messages are copied on their way, as between a page and a worker: neither may change what the other holds.
if (location.protocol === "file:") {
  const message = (value) => new MessageEvent("message", { data: structuredClone(value) });
  window.Worker = class {
    constructor(address) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (value) => {
        const said = message(value);
        setTimeout(() => this.onmessage?.(said));
      };
      const script = inside.document.createElement("script");
      this.ready = new Promise((resolve, reject) => {
        script.onload = () => resolve(inside);
        script.onerror = reject;
      });
      this.ready.catch((error) => this.onerror?.(error));
      script.src = address;
      inside.document.head.append(script);
    }
    postMessage(value) {
      const said = message(value);
      this.ready.then((inside) => setTimeout(() => inside.dispatchEvent(said)));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
