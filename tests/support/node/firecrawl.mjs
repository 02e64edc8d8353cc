// The official Firecrawl client, unchanged: every call that is served. Prints what it returned as one JSON object.
import Firecrawl from "@mendable/firecrawl-js";

const { url, key, site } = JSON.parse(process.argv[2]);
const client = new Firecrawl({ apiKey: key, apiUrl: url });
const page = `${site}/article`;
const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
const returned = {};

async function refused(call) {
  try {
    await call;
  } catch (error) {
    return { status: error.status, message: error.message };
  }
  return null;
}

returned.scrape = await client.scrape(page, {
  formats: ["markdown", "html", "rawHtml", "links", "images", "summary", "changeTracking", { type: "json", schema }],
  onlyMainContent: true,
  lockdown: true,
});
returned.plain = await client.scrape(page);
returned.missing = await refused(client.scrape(`${site}/missing`));
returned.map = await client.map(site, { limit: 10, sitemap: "include" });
returned.search = await client.search("harbours", { limit: 2, scrapeOptions: { formats: ["markdown"] } });
returned.crawl = await client.crawl(`${site}/pages/0`, {
  limit: 7,
  sitemap: "skip",
  crawlEntireDomain: true,
  scrapeOptions: { formats: ["markdown", "links"] },
  pollInterval: 1,
  timeout: 60,
});
const started = await client.startCrawl(`${site}/slow/1?s=1`, { limit: 30, sitemap: "skip" });
returned.active = await client.getActiveCrawls();
returned.cancelled = await client.cancelCrawl(started.id);
returned.status = await client.getCrawlStatus(started.id, { autoPaginate: false });
returned.unknown = await refused(client.getCrawlStatus("no-such-id"));
returned.batch = await client.batchScrape([page, `${site}/pages/1`, `${site}/missing`, "http://10.0.0.1/"], {
  options: { formats: ["markdown"] },
  ignoreInvalidURLs: true,
  pollInterval: 1,
  timeout: 60,
});
returned.errors = await client.getBatchScrapeErrors(returned.batch.id);
returned.extract = await client.extract({ urls: [page], schema, prompt: "The title.", pollInterval: 1, timeout: 60 });
returned.parse = await client.parse({ data: "a,b\n1,2", filename: "table.csv", contentType: "text/csv" });
returned.agent = await refused(client.startAgent({ prompt: "Find the depth." }));

console.log(JSON.stringify(returned));
