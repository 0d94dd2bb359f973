// Requests to the service. The token is stored in this tab. Requests for videos and pictures can't send
// a header, so that a cookie, which allows reading only, sends it for them.

let token = sessionStorage.getItem("csl-token");

export class RequestError extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const setToken = async (given) => {
  token = given;
  await send("/api/session", { method: "POST" });
  sessionStorage.setItem("csl-token", given);
};

export const renewSession = () => (token ? send("/api/session", { method: "POST" }) : null);

const send = async (path, options = {}) => {
  const headers = { ...options.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, "The service does not answer; is it still running?");
  }
  if (response.ok) return response;
  let sentence = response.statusText;
  try {
    sentence = (await response.json()).error;
  } catch { /* no JSON: the status text is all that there is */ }
  throw new RequestError(response.status, sentence);
};

const query = (values) => {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value != null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

const post = (path, body, signal) =>
  send(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
    signal,
  });

/** Who asks, where the service knows. */
export const me = async () => (await send("/api/me")).json();

export const audits = async () => (await send("/api/audits")).json();

const auditPath = (id) => `/api/audits/${encodeURIComponent(id)}`;

/** Facts of the newest audit of a run. */
export const auditFacts = async (id) => (await send(auditPath(id))).json();

/** All requests about one audit. If a newer audit appears, reads stay the same and decisions are refused. */
export const auditApi = (id, revision) => {
  const base = auditPath(id);
  const get = async (what, values) => (await send(`${base}${what}${query(values)}`)).json();
  const postQuery = (what, body, signal) => post(`${base}${what}${query({ revision })}`, body, signal);
  return {
    flags: (values) => get("/flags", { ...values, revision }),
    video: (video) => get("/video", { video, revision }),
    prediction: (video) => get("/prediction", { video, revision }),
    typical: (label, without) => get("/typical", { label, without, revision }),
    groups: () => get("/groups", { revision }),
    effort: () => get("/effort", { revision }),
    overview: () => get("/overview", { revision }),
    certificate: () => get("/certificate", { revision }),
    drawSample: async (form) => (await post(`${base}/certificate`, form)).json(),
    certificateUrl: () => `${base}/certificate/page${query({ revision })}`,
    annotators: () => get("/annotators", { revision }),
    assignment: () => get("/assignment", { revision }),
    assign: async (rule) => (await post(`${base}/assignment`, rule)).json(),
    correctedUrl: () => `${base}/corrected`,
    exportUrl: (format) => `${base}/export${query({ format, revision })}`,
    progress: () => get("/progress", { revision }),
    reviews: (after) => get("/reviews", { after }),
    decide: async (review) => (await post(`${base}/reviews`, { ...review, revision })).json(),
    scores: async (body, signal) => (await postQuery("/scores", body, signal)).json(),
    losses: async (body, signal) =>
      readNpy(await (await postQuery("/trajectory", { ...body, form: "npy" }, signal)).arrayBuffer()),
    mediaUrl: (video, camera) => `${base}/media${query({ video, camera })}`,
    pictureUrl: (video, frame, width) => `${base}/picture${query({ video, frame, width })}`,
  };
};

/** A float32 array in NumPy's format: its shape and its values. */
const readNpy = (buffer) => {
  const length = new DataView(buffer).getUint16(8, true);
  const header = new TextDecoder().decode(new Uint8Array(buffer, 10, length));
  const shape = /'shape': \(([^)]*)\)/.exec(header)[1].split(",").filter((n) => n.trim()).map(Number);
  return { shape, values: new Float32Array(buffer.slice(10 + length)) };
};
