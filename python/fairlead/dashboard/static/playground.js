// Playground: each side's request is made by this browser, as its session, and shown as it comes.

{
  const words = {
    openai: (event) => event.choices?.[0]?.delta?.content ?? event.choices?.[0]?.message?.content,
    responses: (event) =>
      event.type === "response.output_text.delta" ? event.delta
        : event.output?.flatMap((item) => item.content ?? []).map((part) => part.text ?? "").join(""),
    anthropic: (event) =>
      event.type === "content_block_delta" ? event.delta.text
        : event.type === "message" ? event.content.map((part) => part.text ?? "").join("") : "",
    gemini: (event) => event.candidates?.[0]?.content?.parts?.filter((part) => !part.thought).map((part) => part.text ?? "").join(""),
  };
  const tokens = {
    openai: (event) => [event.usage?.prompt_tokens, event.usage?.completion_tokens],
    responses: (event) => [(event.response ?? event).usage?.input_tokens, (event.response ?? event).usage?.output_tokens],
    anthropic: (event) => [(event.message ?? event).usage?.input_tokens, (event.message ?? event).usage?.output_tokens],
    gemini: (event) => [event.usageMetadata?.promptTokenCount, event.usageMetadata?.candidatesTokenCount],
  };
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const inMs = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);
  const inUsd = (usd) => (usd === 0 ? "$0" : usd < 0.01 ? `$${usd.toFixed(6)}` : `$${usd.toFixed(4)}`);

  class Side {
    constructor(part) {
      this.part = part;
      this.dialect = part.dataset.call;
      this.counts = [undefined, undefined];
      this.text = "";
      this.began = performance.now();
    }

    set(name, text) {
      this.part.querySelector(`[data-${name}]`).textContent = text;
    }

    state(text, mood) {
      const badge = this.part.querySelector(".title .badge");
      badge.textContent = text;
      badge.className = `badge ${mood}`;
    }

    take(event) {
      const failure = event.error ?? (event.type === "response.failed" ? event.response?.error : null);
      if (failure) throw new Error(failure.message ?? "The stream failed.");
      const said = words[this.dialect](event);
      this.counts = tokens[this.dialect](event).map((count, at) => count ?? this.counts[at]);
      if (!said) return;
      if (!this.text) this.set("first", inMs(performance.now() - this.began));
      this.text += said;
      this.set("said", this.text);
    }

    async read(answer) {
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        rest += value ?? "";
        const lines = rest.split(/\r?\n/);
        rest = lines.pop();
        for (const line of lines) {
          const data = line.startsWith("data:") ? line.slice(5).trim() : "";
          if (data && data !== "[DONE]") this.take(JSON.parse(data));
        }
        if (done) return;
      }
    }

    async ask() {
      const { path, body } = this.part.dataset;
      let id = null;
      try {
        const answer = await fetch(path, { method: "POST", headers, body });
        id = answer.headers.get("x-gateway-request-id");
        if (id) this.link(id);
        if (answer.headers.get("content-type")?.startsWith("text/event-stream")) await this.read(answer);
        else this.take(await answer.json());
        if (!answer.ok) throw new Error(`The gateway answered ${answer.status}.`);
        this.serve(answer.headers);
        const cost = answer.headers.get("x-gateway-response-cost");
        if (answer.headers.has("x-gateway-unpriced")) this.set("cost", "no price");
        else if (cost !== null) this.set("cost", inUsd(Number(cost)));
        this.state("answered", "good");
        this.remember();
      } catch (error) {
        this.state("failed", "bad");
        this.set("error", error.message);
        this.part.querySelector("[data-error]").hidden = false;
      }
      this.set("took", inMs(performance.now() - this.began));
      this.set("tokens", this.counts.map((count) => count ?? "not told").join(", "));
      if (id && !this.part.querySelector("[data-cost]").textContent) await this.settle(id);
    }

    serve(headers) {
      const served = [headers.get("x-gateway-provider"), headers.get("x-gateway-model")].filter(Boolean).join(" / ");
      const failed = Number(headers.get("x-gateway-fallback-attempts") ?? 0);
      this.set("served", (served || "nobody") + (failed ? `, after ${failed} failed` : ""));
    }

    link(id) {
      const link = document.createElement("a");
      link.href = `/dashboard/logs/${encodeURIComponent(id)}`;
      link.textContent = id.length > 12 ? `${id.slice(0, 12)}…` : id;
      this.part.querySelector("[data-request]").replaceChildren(link);
    }

    // A stream's cost is in the log, a moment after its end.
    async settle(id) {
      for (let left = 12; left; left -= 1) {
        const answer = await fetch(`/api/usage/request-logs?limit=1&requestId=${encodeURIComponent(id)}`);
        if (!answer.ok) break;
        const { logs: [row] } = await answer.json();
        if (row) {
          this.set("cost", row.isUnpriced ? "no price" : inUsd(row.costUsdMicros / 1e6));
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, 400));
      }
      this.set("cost", "not logged");
    }

    remember() {
      const field = document.querySelector("[data-turns]");
      const turns = JSON.parse(field.value);
      turns.at(-1).answers[Number(this.part.dataset.side)] = this.text;
      field.value = JSON.stringify(turns);
    }
  }

  document.getElementById("ask")?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const button = event.currentTarget.querySelector("button");
    if (!button.disabled) event.currentTarget.requestSubmit(button);
  });

  const parts = [...document.querySelectorAll("[data-call]")];
  const buttons = document.querySelectorAll("#ask button");
  if (parts.length) {
    for (const each of buttons) each.disabled = true;
    Promise.all(parts.map((part) => new Side(part).ask())).finally(() => {
      for (const each of buttons) each.disabled = false;
    });
  }
}
