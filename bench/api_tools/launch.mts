// The generated types of TypeScript: a run is launched and its state read, strictly typed.
import createClient from "openapi-fetch";
import type { components, paths } from "./made.d.ts";

declare const process: { argv: string[]; exit(status: number): never };
const [url, token, body] = process.argv.slice(2) as [string, string, string];
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
const asked: components["schemas"]["RunByNames"] = JSON.parse(body);
const { data, error } = await api.POST("/api/v1/runs", { body: asked });
if (!data) {
  console.error(error.detail);
  process.exit(1);
}
const state: "queued" | "preparing" | "warming_up" | "measuring" | "collecting" | "restoring" | "finished" = data.state;
console.log(`TypeScript: run #${data.number} is ${state}`);
