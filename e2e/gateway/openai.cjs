// Tests the OpenAI front with OpenAI's SDK for Node.js.
const assert = require("node:assert/strict");
const OpenAI = require("openai");

const baseURL = `${process.env.GATEWAY_URL}/v1`;
const client = new OpenAI({ baseURL, apiKey: process.env.GATEWAY_TOKEN, maxRetries: 0 });
const user = (content) => ({ role: "user", content });

async function main() {
  const models = await client.models.list();
  assert.ok(models.data.some((model) => model.id === "greeter"));

  const answer = await client.chat.completions.create({ model: "greeter", messages: [user("Greet Node")] });
  const said = answer.choices[0].message;
  assert.equal(said.content, "Grüße, 訂單 17 🌸!");

  const stream = await client.chat.completions.create({
    model: "greeter",
    messages: [user("Greet Node"), said, user("Again, Node")],
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = "";
  let usage;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, "Hello again.");
  assert.ok(usage.total_tokens > 0);

  const tools = [{ type: "function", function: { name: "t", parameters: {} } }];
  const refused = client.chat.completions.create({ model: "greeter", messages: [user("Greet Node")], tools });
  await assert.rejects(refused, (error) => error.status === 400 && /tools/.test(error.message));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
