// The WebSocket to the server; it connects again after a loss. viz/web/page_session.h describes the messages.

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 4000;

export class Connection {
  /**
   * @param {(message: import("./types").Message) => void} onMessage gets each JSON message
   * @param {(head: import("./types").PictureHead, file: Blob) => void} onPicture gets each picture, and each snapshot
   * @param {(head: import("./types").PoseHead, data: ArrayBuffer, begin: number) => void} onPoses gets each snapshot of
   *     poses: the rows of `data` from `begin` on
   * @param {(open: boolean) => void} onChange gets the state of the connection
   */
  constructor(onMessage, onPicture, onPoses, onChange) {
    this.onMessage = onMessage;
    this.onPicture = onPicture;
    this.onPoses = onPoses;
    this.onChange = onChange;
    this.retryMs = FIRST_RETRY_MS;
    /** @type {Map<number, {succeed: (answer: unknown) => void, fail: (error: Error) => void}>} */
    this.actions = new Map();
    this.lastAction = 0;
    this.socket = this.connect();
  }

  /** @returns {WebSocket} */
  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/socket`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.retryMs = FIRST_RETRY_MS;
      this.onChange(true);
    };
    socket.onmessage = (event) => this.receive(event.data);
    socket.onclose = () => {
      for (const action of this.actions.values()) action.fail(new Error("the connection was lost"));
      this.actions.clear();
      this.onChange(false);
      setTimeout(() => { this.socket = this.connect(); }, this.retryMs);
      this.retryMs = Math.min(LAST_RETRY_MS, 2 * this.retryMs);
    };
    return socket;
  }

  /** @param {string | ArrayBuffer} data */
  receive(data) {
    if (typeof data !== "string") {
      const length = new DataView(data).getUint32(0, true);
      const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
      if (head.poses) {
        this.onPoses(head, data, 4 + length);
        return;
      }
      const type = head.png ? "image/png" : "image/jpeg";
      this.onPicture(head, new Blob([new Uint8Array(data, 4 + length)], { type }));
      return;
    }
    const message = JSON.parse(data);
    if (message.is === "hello") this.send({ do: "pong" });
    if (message.is !== "done" && message.is !== "answer") {
      this.onMessage(message);
      return;
    }
    const action = this.actions.get(message.id);
    this.actions.delete(message.id);
    if (message.error) action?.fail(new Error(message.error));
    else action?.succeed(message.is === "done" ? message.text : message.answer);
  }

  /**
   * Sends a message; without a connection it is dropped.
   * @param {import("./types").Fields} message
   */
  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /**
   * @param {import("./types").Fields} action the fields of "act"
   * @returns {Promise<string>} a text for the user; rejected with the reason of a refusal
   */
  act(action) {
    return this.ask({ ...action, do: "act" });
  }

  /**
   * @template Answer
   * @param {import("./types").Fields} question a message that is answered by "done" or "answer"
   * @returns {Promise<Answer>} the text or the answer; rejected with the reason of a refusal
   */
  ask(question) {
    if (this.socket.readyState !== WebSocket.OPEN) return Promise.reject(new Error("there is no connection"));
    return new Promise((succeed, fail) => {
      const id = ++this.lastAction;
      this.actions.set(id, { succeed: (answer) => succeed(/** @type {Answer} */ (answer)), fail });
      this.send({ ...question, id });
    });
  }
}
