ALTER TABLE accounts RENAME COLUMN plan_by_hand TO manual_plan;
ALTER TABLE customers RENAME COLUMN noticed_at TO notified_at;
ALTER TABLE endpoints RENAME COLUMN why TO disabled_reason;
ALTER TABLE endpoints RENAME COLUMN untold TO notify_owner;
ALTER TABLE attempts RENAME COLUMN answer TO response;
ALTER TABLE minutes RENAME COLUMN requests TO checks;
