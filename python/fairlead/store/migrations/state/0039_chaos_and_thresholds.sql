-- Percent that are kept back of a connection's quota windows, by the window's name, as JSON.
ALTER TABLE provider_connections ADD COLUMN quota_window_thresholds VARCHAR;

-- Faults on purpose for the calls of a key: the share of calls, which faults, and how long those that take time take.

ALTER TABLE keys ADD COLUMN chaos_rate DOUBLE DEFAULT 0.1;
ALTER TABLE keys ADD COLUMN chaos_faults VARCHAR[]
    DEFAULT ['error', 'overload', 'rate-limit', 'timeout', 'latency'];
ALTER TABLE keys ADD COLUMN chaos_latency_ms INTEGER DEFAULT 2000;
