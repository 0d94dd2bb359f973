// The OpenAPI document as a page, without anything from elsewhere.

import { element } from "./text.js";

const typeOf = (schema = {}) => {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.const) return schema.const;
  if (schema.anyOf) return schema.anyOf.map(typeOf).filter((type) => type !== "null").join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.type ?? "";
};

const table = (rows) => element("table", {}, element("tbody", {}, ...rows.map(([name, type, words]) =>
  element("tr", {}, element("td", {}, element("code", {}, name)), element("td", {}, type), element("td", {}, words)))));

const fields = (schema) => Object.entries(schema.properties ?? {}).map(([name, own]) =>
  [name, typeOf(own), [schema.required?.includes(name) ? "needed" : "", own.description ?? ""].filter(Boolean).join("; ")]);

const curl = (method, path, parameters, example) => {
  const needed = parameters.filter((p) => p.in === "query" && p.required).map((p) => `${p.name}=${p.schema.examples?.[0] ?? "v2"}`);
  const url = `${location.origin}${path.replace("{audit}", "AUDIT")}${needed.length ? `?${needed.join("&")}` : ""}`;
  const body = example ? ` \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(example)}'` : "";
  return `curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}'${url}'${body}`;
};

const answer = await fetch("/openapi.json");
const api = await answer.json();
const resolve = (schema) => (schema?.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] : schema);
document.getElementById("description").textContent = api.info.description;

const groups = Map.groupBy(
  Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation }))),
  (operation) => operation.tags?.[0] ?? "service",
);
document.getElementById("operations").replaceChildren(...[...groups].flatMap(([tag, operations]) => [
  element("h2", {}, tag),
  ...operations.map(({ path, method, description = "", parameters = [], requestBody, responses }) => {
    const form = resolve(requestBody?.content["application/json"].schema);
    const made = Object.entries(responses).find(([status]) => status.startsWith("2"));
    const given = resolve(made?.[1].content?.["application/json"]?.schema);
    return element("details", {},
      element("summary", {}, element("b", {}, method.toUpperCase()), element("code", {}, path), element("span", {}, description)),
      parameters.length ? table(parameters.map((p) => [p.name, typeOf(p.schema), [p.required ? "needed" : "", p.description ?? ""].filter(Boolean).join("; ")])) : "",
      form ? element("p", {}, "Body") : "", form ? table(fields(form)) : "",
      element("pre", {}, curl(method, path, parameters, form?.examples?.[0])),
      given?.properties ? element("p", {}, "Answer") : "", given?.properties ? table(fields(given)) : "");
  }),
]));
