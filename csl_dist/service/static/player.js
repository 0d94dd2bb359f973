// The player: a video file, single pictures, or a sentence that says why there is no picture.

const CONTEXT_SECONDS = 1.5;
const MAX_PICTURES_PER_SECOND = 12;

export class Player {
  constructor(elements, { onMove, onState }) {
    Object.assign(this, elements, { onMove, onState });
    this.mode = "none";
    this.frame = 0;
    this.playing = null; // an object per start of playing; null while stopped
    this.video.addEventListener("error", () => this.video.hidden || this.showAsFrames());
    this.video.addEventListener("seeked", () => this.playing || this.followVideo());
  }

  /** Shows a video; `urls` has the URLs of its file and of its frames. */
  open(facts, urls) {
    this.stop();
    Object.assign(this, { facts, urls });
    this.offset = facts.start_seconds ?? 0; // several videos may be ranges of one file
    this.show(facts.media, facts.note);
  }

  /** Shows only a sentence. */
  close(note) {
    this.stop();
    this.show("missing", note);
  }

  show(media, note) {
    this.mode = media === "video" || media === "frames" ? media : "none";
    this.video.hidden = this.mode !== "video";
    this.picture.hidden = this.mode !== "frames";
    this.noPicture.hidden = this.mode !== "none";
    this.note.hidden = !note || this.mode === "none";
    this.note.textContent = this.noPicture.textContent = note ?? "";
    if (this.mode === "video") this.video.src = this.urls.media;
    else this.video.removeAttribute("src");
  }

  showAsFrames() {
    this.show("frames", "This browser can't play the file, so single frames are shown.");
    this.seek(this.frame);
  }

  secondsOf(frame) {
    return this.facts.times ? this.facts.times[frame] : frame / this.facts.fps;
  }

  frameAt(seconds) {
    const { times, fps, num_frames: count } = this.facts;
    let frame = Math.round(seconds * fps);
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

  seek(frame) {
    this.frame = Math.min(this.facts.num_frames - 1, Math.max(0, frame));
    // Slightly after the frame's start: the start itself may show the frame before.
    if (this.mode === "video") this.video.currentTime = this.offset + this.secondsOf(this.frame) + 0.25 / this.facts.fps;
    if (this.mode === "frames") this.picture.src = this.urls.picture(this.frame);
    this.onMove(this.frame);
  }

  /** Moves the cursor to the time of the video. */
  followVideo() {
    this.frame = this.frameAt(this.video.currentTime - this.offset - 0.25 / this.facts.fps);
    this.onMove(this.frame);
  }

  toggle(span) {
    if (this.playing) this.stop();
    else this.play(span);
  }

  /** Plays a span with some context, in a loop. */
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
    const stride = Math.max(1, Math.round(this.facts.fps / MAX_PICTURES_PER_SECOND));
    const pause = (1000 * stride) / this.facts.fps;
    while (this.playing === playback) {
      const next = this.frame + stride > last ? first : this.frame + stride;
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
