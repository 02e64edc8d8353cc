// The official `@anthropic-ai/sdk` client: messages, plain and streamed. Prints what it read as one JSON object.
import Anthropic from "@anthropic-ai/sdk";

const { url, key, model } = JSON.parse(process.argv[2]);
const client = new Anthropic({ baseURL: url, apiKey: key, authToken: null, maxRetries: 0 });
const asked = { model, max_tokens: 100, messages: [{ role: "user", content: "Say hello." }] };
const told = {};

told.text = (await client.messages.create(asked)).content[0].text;
const stream = client.messages.stream(asked);
told.streamed = await stream.finalText();
told.stop = (await stream.finalMessage()).stop_reason;
const tools = [{ name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }];
const call = (await client.messages.stream({ ...asked, tools }).finalMessage()).content.find((b) => b.type === "tool_use");
told.call = [call.name, call.input];
try {
  await client.messages.create({ ...asked, model: "nobody/m" });
} catch (error) {
  told.error = [error.constructor.name, error.status, error.error.error.type];
}
console.log(JSON.stringify(told));
