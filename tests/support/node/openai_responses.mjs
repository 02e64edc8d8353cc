// The official `openai` client: chat and responses, plain and streamed. Prints what it read as one JSON object.
import OpenAI from "openai";

const { url, key, model } = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const told = {};

const plain = await client.responses.create({ model, input: "Say hello." });
told.text = plain.output_text;
let streamed = "";
const ends = [];
for await (const event of await client.responses.create({ model, input: "Say hello.", stream: true })) {
  if (event.type === "response.output_text.delta") streamed += event.delta;
  if (["response.completed", "response.failed", "response.incomplete"].includes(event.type)) ends.push(event.type);
}
told.streamed = streamed;
told.ends = ends;
const helper = client.responses.stream({ model, input: "Say hello." });
told.final = (await helper.finalResponse()).output_text;

const messages = [{ role: "user", content: "Say hello." }];
told.chat = (await client.chat.completions.create({ model, messages })).choices[0].message.content;
const runner = client.chat.completions.stream({ model, messages });
told.chatStreamed = await runner.finalContent();
try {
  await client.responses.create({ model: "nobody/m", input: "x" });
} catch (error) {
  told.error = [error.constructor.name, error.status, error.code];
}
console.log(JSON.stringify(told));
