// `ai` with one of its providers, which is strict about how streams end. Prints what it read as one JSON object.
import { generateText, jsonSchema, streamText, tool } from "ai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";

const { url, key, model: name, provider } = JSON.parse(process.argv[2]);
const make = {
  responses: () => createOpenAI({ baseURL: `${url}/v1`, apiKey: key }).responses(name),
  chat: () => createOpenAI({ baseURL: `${url}/v1`, apiKey: key }).chat(name),
  compatible: () => createOpenAICompatible({ name: "fairlead", baseURL: `${url}/v1`, apiKey: key, includeUsage: true })(name),
  anthropic: () => createAnthropic({ baseURL: `${url}/v1`, apiKey: key })(name),
};
const model = make[provider]();
const prompt = "Say hello.";
const told = {};

const plain = await generateText({ model, prompt, maxRetries: 0 });
told.text = plain.text;
told.finish = plain.finishReason;
const errors = [];
const stream = streamText({ model, prompt, maxRetries: 0, onError: ({ error }) => errors.push(String(error)) });
let streamed = "";
for await (const part of stream.textStream) streamed += part;
told.streamed = streamed;
told.streamFinish = await stream.finishReason;
told.usage = (await stream.usage).outputTokens > 0;
const tools = {
  weather: tool({
    description: "The weather of a city",
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
  }),
};
const calling = streamText({ model, prompt: "Weather?", tools, maxRetries: 0, onError: ({ error }) => errors.push(String(error)) });
const calls = await calling.toolCalls;
told.call = [calls[0]?.toolName, calls[0]?.input];
told.callFinish = await calling.finishReason;
told.errors = errors;
console.log(JSON.stringify(told));
