// The player: a video file, single pictures, or a sentence that says why there is no picture.
// Its place is a time: a file has more frames than those that the audit looks at.

import { changePlayer, state } from "./state.js";

const CONTEXT_SECONDS = 1.5;
const MAX_PICTURES_PER_SECOND = 12;
const SPEEDS = [0.25, 0.5, 1, 1.5, 2, 4];

export class Player {
  constructor(elements, { onMove, onState }) {
    Object.assign(this, elements, { onMove, onState });
    this.mode = "none";
    this.seconds = 0;
    this.playing = null; // an object per start of playing; null while stopped
    this.video.addEventListener("error", () => this.video.hidden || this.showAsFrames());
    this.video.addEventListener("seeked", () => this.playing || this.followVideo());
  }

  /** Shows a video; `urls` has the URLs of its file and of its frames. */
  open(facts, urls) {
    this.stop();
    Object.assign(this, { facts, urls, seconds: 0 });
    this.offset = facts.start_seconds ?? 0; // several videos may be ranges of one file
    this.camera = null;
    const liked = facts.cameras.find(({ name }) => name === state.player.camera);
    if (liked) this.chooseCamera(liked);
    this.show(facts.media, facts.note);
    this.applySettings();
  }

  /** Shows only a sentence. */
  close(note) {
    this.stop();
    this.facts = null;
    this.show("missing", note);
  }

  show(media, note) {
    this.mode = media === "video" || media === "frames" ? media : "none";
    this.stage.dataset.mode = this.mode; // what can't be used is hidden
    this.video.hidden = this.mode !== "video";
    this.picture.hidden = this.mode !== "frames";
    this.noPicture.hidden = this.mode !== "none";
    this.note.hidden = !note || this.mode === "none";
    this.note.textContent = this.noPicture.textContent = note ?? "";
    if (this.mode === "video") this.video.src = this.urls.media(this.camera);
    else this.video.removeAttribute("src");
  }

  chooseCamera({ name, start_seconds: start }) {
    this.camera = name;
    this.offset = start;
  }

  /** Shows the same moment from the next camera, or from the one that is named. */
  changeCamera(name) {
    const { cameras } = this.facts;
    if (cameras.length < 2) return;
    const at = cameras.findIndex((one) => one.name === (this.camera ?? cameras[0].name));
    const next = cameras.find((one) => one.name === name) ?? cameras[(at + 1) % cameras.length];
    const { seconds } = this;
    this.stop();
    this.chooseCamera(next);
    changePlayer({ camera: next.name });
    this.show(this.facts.media, this.facts.note);
    this.applySettings();
    this.seekSeconds(seconds);
  }

  showAsFrames() {
    this.show("frames", "This browser can't play the file, so single frames are shown.");
    this.seek(this.frame);
  }

  applySettings() {
    this.video.muted = state.player.muted;
    this.video.playbackRate = state.player.speed;
    this.onState(Boolean(this.playing));
  }

  toggleSound() {
    changePlayer({ muted: !state.player.muted });
    this.applySettings();
  }

  toggleLoop() {
    changePlayer({ loop: !state.player.loop });
    this.applySettings();
  }

  changeSpeed(step) {
    const at = SPEEDS.indexOf(state.player.speed);
    const next = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, (at < 0 ? SPEEDS.indexOf(1) : at) + step))];
    changePlayer({ speed: next });
    this.applySettings();
  }

  get frame() {
    return this.facts ? this.frameAt(this.seconds) : 0;
  }

  secondsOf(frame) {
    const { times, fps, num_frames: count } = this.facts;
    if (!times) return frame / fps;
    return frame < count ? times[frame] : times[count - 1] + 1 / fps;
  }

  /** The last frame of the audit that is not after a time. */
  frameAt(seconds) {
    const { times, fps, num_frames: count } = this.facts;
    let frame = Math.floor(seconds * fps + 1e-3);
    if (times) {
      let low = 0;
      let high = count - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (times[middle] <= seconds + 1e-4) low = middle;
        else high = middle - 1;
      }
      frame = low;
    }
    return Math.min(count - 1, Math.max(0, frame));
  }

  /** The first frame of the audit that is not before a time: what an edge at that time is before. */
  edgeFrameAt(seconds) {
    const frame = this.frameAt(seconds);
    return this.secondsOf(frame) >= seconds - 1e-4 ? frame : frame + 1;
  }

  /** Goes to a frame of the audit. */
  seek(frame) {
    if (!this.facts) return;
    this.seekSeconds(this.secondsOf(Math.min(this.facts.num_frames - 1, Math.max(0, frame))));
  }

  seekSeconds(seconds) {
    if (!this.facts) return;
    this.seconds = Math.min(this.secondsOf(this.facts.num_frames - 1), Math.max(0, seconds));
    // Slightly after the frame's start: the start itself may show the frame before.
    if (this.mode === "video") this.video.currentTime = this.seconds + this.shift;
    if (this.mode === "frames") this.picture.src = this.urls.picture(this.frame);
    this.onMove(this.frame, this.seconds);
  }

  get shift() {
    return this.offset + 0.25 / this.facts.source_fps;
  }

  /** By frames of the file where it is played, else by frames of the audit. */
  step(count) {
    this.stop();
    if (this.mode === "video") {
      const at = Math.round(this.seconds * this.facts.source_fps) + count;
      this.seekSeconds(at / this.facts.source_fps);
    } else this.seek(this.frame + count);
  }

  stepSeconds(seconds) {
    this.stop();
    this.seekSeconds(this.seconds + seconds);
  }

  /** Moves the cursor to the time of the video. */
  followVideo() {
    const seconds = Math.max(0, this.video.currentTime - this.shift);
    // The file may round a time; a place that was asked for stays as it is.
    if (Math.abs(seconds - this.seconds) > 0.6 / this.facts.source_fps || this.playing) this.seconds = seconds;
    this.onMove(this.frame, this.seconds);
  }

  toggle(span) {
    if (this.playing) this.stop();
    else this.play(span);
  }

  /** Plays a span with some context, in a loop if that is wanted. */
  play(span) {
    const context = Math.max(1, Math.round(CONTEXT_SECONDS * this.facts.fps));
    const first = Math.max(0, span.start - context);
    const last = Math.min(this.facts.num_frames - 1, span.stop - 1 + context);
    if (this.frame < first || this.frame >= last) this.seek(first);
    const playback = {};
    this.playing = playback;
    this.onState(true);
    if (this.mode === "video") this.playVideo(first, last, playback);
    else this.playPictures(first, last, playback);
  }

  playVideo(first, last, playback) {
    this.video.play().catch(() => this.stop());
    const step = () => {
      if (this.playing !== playback || this.mode !== "video") return;
      const seconds = this.video.currentTime - this.offset;
      if (seconds >= this.secondsOf(last) + 1 / this.facts.fps || this.video.ended) {
        if (!state.player.loop) return this.stop();
        this.video.currentTime = this.offset + this.secondsOf(first);
        if (this.video.ended) this.video.play().catch(() => this.stop());
      }
      this.followVideo();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  /** Without pictures, only the cursor moves. */
  async playPictures(first, last, playback) {
    const rate = this.facts.fps * state.player.speed;
    const stride = Math.max(1, Math.round(rate / MAX_PICTURES_PER_SECOND));
    const pause = (1000 * stride) / rate;
    while (this.playing === playback) {
      const isEnd = this.frame + stride > last;
      if (isEnd && !state.player.loop) return this.stop();
      const next = isEnd ? first : this.frame + stride;
      const due = performance.now() + pause;
      if (this.mode === "frames") await preload(this.urls.picture(next)).catch(() => this.stop());
      if (this.playing !== playback) return;
      this.seek(next);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    }
  }

  stop() {
    if (!this.playing) return;
    this.playing = null;
    this.video.pause();
    this.onState(false);
  }
}

const preload = async (url) => {
  const picture = new Image();
  picture.src = url;
  await picture.decode();
};

let nextVideo = null;

/** Lets the browser fetch what comes next: the file of another video near a time, or a picture. */
export const prefetch = ({ media, mediaUrl, pictureUrl, seconds }) => {
  if (media === "frames") new Image().src = pictureUrl;
  if (media !== "video") return;
  nextVideo ??= Object.assign(document.createElement("video"), { preload: "auto", muted: true });
  nextVideo.src = mediaUrl;
  nextVideo.currentTime = seconds;
};
