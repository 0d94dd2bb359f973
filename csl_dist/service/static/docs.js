// The OpenAPI document as a page; nothing is loaded from other sites.

import { element } from "./text.js";

const nameOf = (reference) => reference.split("/").at(-1);

/** Text in which words between backticks are code. */
const prose = (text = "") => text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));

/** A type in words; a type with fields is a link to their table. */
const typeOf = (schema = {}) => {
  if (schema.$ref) {
    const own = schemas[nameOf(schema.$ref)];
    return own.properties ? [element("a", { href: `#${nameOf(schema.$ref)}` }, nameOf(schema.$ref))] : typeOf(own);
  }
  if (schema.enum) return [schema.enum.join(" | ")];
  if (schema.const) return [schema.const];
  if (schema.anyOf) return schema.anyOf.flatMap((one, i) => [i ? " or " : "", ...typeOf(one)]);
  if (schema.type === "array") return ["list of ", ...typeOf(schema.items)];
  return [schema.type ?? "any"];
};

const table = (rows) => element("table", {}, element("tbody", {}, ...rows.map(([name, type, words]) =>
  element("tr", {}, element("td", {}, element("code", {}, name)), element("td", {}, ...type), element("td", {}, ...words)))));

/** A field of a request: whether it is required, or its default; null means no default. */
const requestField = (name, schema, isRequired) => {
  const type = typeOf({ ...schema, anyOf: schema.anyOf?.filter((one) => one.type !== "null") });
  const known = schema.default ?? null;
  const defaultText = known === null ? [] : [" Default ", element("code", {}, JSON.stringify(known)), "."];
  return [name, type, [...prose(schema.description), ...(isRequired ? [" ", element("b", {}, "Required.")] : defaultText)]];
};

const fields = (schema, row) => table(Object.entries(schema.properties).map(([name, own]) => row(name, own)));
const requestTable = (schema) => fields(schema, (name, own) => requestField(name, own, schema.required?.includes(name)));
const responseTable = (schema) => fields(schema, (name, own) => [name, typeOf(own), prose(own.description)]);

const curl = (method, path, parameters, example) => {
  const needed = parameters.filter((p) => p.in === "query" && p.required).map((p) => `${p.name}=${p.schema.examples?.[0] ?? 0}`);
  const url = `${location.origin}${path.replace("{audit}", "AUDIT")}${needed.length ? `?${needed.join("&")}` : ""}`;
  const body = example ? ` \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(example, null, 2)}'` : "";
  return `curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}'${url}'${body}`;
};

/** The name of the form of a request's body, if it has one. */
const bodyOf = ({ requestBody }) => requestBody && nameOf(requestBody.content["application/json"].schema.$ref);

const operation = (own) => {
  const { path, method, description, parameters = [], responses } = own;
  const body = schemas[bodyOf(own)];
  const success = Object.entries(responses).find(([status]) => status.startsWith("2"))[1];
  const answer = success.content?.["application/json"]?.schema;
  return element("details", {},
    element("summary", {}, element("b", {}, method.toUpperCase()), element("code", {}, path),
      element("span", {}, ...prose(description))),
    parameters.length ? table(parameters.map((p) => requestField(p.name, { ...p.schema, description: p.description }, p.required))) : "",
    ...(body ? [element("h3", {}, "Body"), requestTable(body)] : []),
    element("h3", {}, "Example"),
    element("pre", {}, curl(method, path, parameters, body?.examples?.[0])),
    ...(answer ? [element("h3", {}, "Response"), element("p", {}, ...typeOf(answer))] : []));
};

const api = await (await fetch("/openapi.json")).json();
const { schemas } = api.components;
document.getElementById("description").replaceChildren(...prose(api.info.description));

const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, own]) => ({ path, method, ...own })));
document.getElementById("operations").replaceChildren(
  ...[...Map.groupBy(operations, ({ tags }) => tags[0])].flatMap(([tag, own]) =>
    [element("h2", {}, tag), ...own.map(operation)]));

const bodies = new Set(operations.map(bodyOf));
document.getElementById("forms").replaceChildren(element("h2", {}, "forms"),
  ...Object.entries(schemas).filter(([name, { properties }]) => properties && !bodies.has(name)).map(([name, schema]) =>
    element("section", { id: name }, element("h3", {}, name), element("p", {}, ...prose(schema.description)), responseTable(schema))));
