-- Headers and cookies of a job's request, sealed. Deleted when the job ends.
ALTER TABLE scrape_jobs ADD COLUMN secrets_sealed BLOB;
