-- The catalog: what the newest release has.

CREATE TABLE categories (
  slug text NOT NULL,
  label text NOT NULL,
  translations json NULL,
  tool_count integer NOT NULL DEFAULT (0),
  avg_score real NULL,
  fingerprint text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  PRIMARY KEY (slug)
);

CREATE TABLE tools (
  slug text NOT NULL,
  name text NOT NULL,
  name_key text NOT NULL,
  score real NULL,
  domain text NULL,
  icp text NULL,
  pricing text NULL,
  price text NULL,
  price_amount real NULL,
  price_period text NULL,
  verifiability real NULL,
  obsolescence real NULL,
  tagline text NULL,
  canonical_url text NULL,
  avis_url text NULL,
  alternatives_url text NULL,
  updated_at text NULL,
  translations json NULL,
  sources json NULL,
  tier integer NULL,
  mainstream bool NOT NULL DEFAULT (false),
  sections_hash text NULL,
  history_hash text NULL,
  in_embeddings bool NOT NULL DEFAULT (false),
  retired_reason text NULL,
  retired_at text NULL,
  retired_note text NULL,
  fingerprint text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  category_slug text NOT NULL,
  PRIMARY KEY (slug),
  CONSTRAINT tools_categories_tools FOREIGN KEY (category_slug) REFERENCES categories (slug) ON DELETE NO ACTION,
  CONSTRAINT tools_active_or_retired CHECK ((retired_at IS NULL) = (domain IS NOT NULL))
);

CREATE TABLE sections (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  position integer NOT NULL,
  section text NOT NULL,
  text text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  tool_slug text NOT NULL,
  CONSTRAINT sections_tools_sections FOREIGN KEY (tool_slug) REFERENCES tools (slug) ON DELETE CASCADE
);
CREATE UNIQUE INDEX sections_by_tool ON sections (tool_slug, position);

CREATE TABLE price_changes (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  changed_at text NOT NULL,
  pricing text NOT NULL,
  price text NOT NULL,
  previous_pricing text NOT NULL,
  previous_price text NOT NULL,
  digest text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  tool_slug text NOT NULL,
  CONSTRAINT price_changes_tools_price_changes FOREIGN KEY (tool_slug) REFERENCES tools (slug) ON DELETE CASCADE
);
CREATE UNIQUE INDEX price_changes_once ON price_changes (tool_slug, digest);

CREATE TABLE comparisons (
  slug text NOT NULL,
  title text NOT NULL,
  winner_note text NOT NULL,
  translations json NULL,
  published bool NOT NULL,
  updated_at text NOT NULL,
  canonical_url text NOT NULL,
  fingerprint text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  tool_a_slug text NOT NULL,
  tool_b_slug text NOT NULL,
  winner_slug text NOT NULL,
  PRIMARY KEY (slug),
  CONSTRAINT comparisons_tools_comparisons_as_a FOREIGN KEY (tool_a_slug) REFERENCES tools (slug) ON DELETE NO ACTION,
  CONSTRAINT comparisons_tools_comparisons_as_b FOREIGN KEY (tool_b_slug) REFERENCES tools (slug) ON DELETE NO ACTION,
  CONSTRAINT comparisons_tools_comparisons_won FOREIGN KEY (winner_slug) REFERENCES tools (slug) ON DELETE NO ACTION
);
CREATE INDEX comparisons_by_tool_a ON comparisons (tool_a_slug);
CREATE INDEX comparisons_by_tool_b ON comparisons (tool_b_slug);
CREATE INDEX comparisons_by_winner ON comparisons (winner_slug);

-- Its history: rows that releases have replaced or removed, see docs/design/009-time-travel.md.

CREATE TABLE categories_versions (
  version integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  until_release integer NOT NULL,
  slug text NOT NULL,
  label text NOT NULL,
  translations json NULL,
  tool_count integer NOT NULL DEFAULT (0),
  avg_score real NULL,
  fingerprint text NOT NULL,
  since_release integer NOT NULL DEFAULT (1)
);
CREATE INDEX categoryversion_slug_since_release ON categories_versions (slug, since_release);
CREATE INDEX categoryversion_until_release ON categories_versions (until_release);

CREATE TABLE tools_versions (
  version integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  until_release integer NOT NULL,
  slug text NOT NULL,
  name text NOT NULL,
  name_key text NOT NULL,
  score real NULL,
  domain text NULL,
  icp text NULL,
  pricing text NULL,
  price text NULL,
  price_amount real NULL,
  price_period text NULL,
  verifiability real NULL,
  obsolescence real NULL,
  tagline text NULL,
  canonical_url text NULL,
  avis_url text NULL,
  alternatives_url text NULL,
  updated_at text NULL,
  translations json NULL,
  sources json NULL,
  tier integer NULL,
  mainstream bool NOT NULL DEFAULT (false),
  sections_hash text NULL,
  history_hash text NULL,
  in_embeddings bool NOT NULL DEFAULT (false),
  retired_reason text NULL,
  retired_at text NULL,
  retired_note text NULL,
  fingerprint text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  category_slug text NOT NULL
);
CREATE INDEX toolversion_slug_since_release ON tools_versions (slug, since_release);
CREATE INDEX toolversion_until_release ON tools_versions (until_release);

CREATE TABLE sections_versions (
  version integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  until_release integer NOT NULL,
  id integer NOT NULL,
  position integer NOT NULL,
  section text NOT NULL,
  text text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  tool_slug text NOT NULL
);
CREATE INDEX sectionversion_tool_slug_since_release ON sections_versions (tool_slug, since_release);
CREATE INDEX sectionversion_until_release ON sections_versions (until_release);

CREATE TABLE price_changes_versions (
  version integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  until_release integer NOT NULL,
  id integer NOT NULL,
  changed_at text NOT NULL,
  pricing text NOT NULL,
  price text NOT NULL,
  previous_pricing text NOT NULL,
  previous_price text NOT NULL,
  digest text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  tool_slug text NOT NULL
);
CREATE INDEX pricechangeversion_tool_slug_since_release ON price_changes_versions (tool_slug, since_release);
CREATE INDEX pricechangeversion_until_release ON price_changes_versions (until_release);

CREATE TABLE comparisons_versions (
  version integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  until_release integer NOT NULL,
  slug text NOT NULL,
  title text NOT NULL,
  winner_note text NOT NULL,
  translations json NULL,
  published bool NOT NULL,
  updated_at text NOT NULL,
  canonical_url text NOT NULL,
  fingerprint text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  tool_a_slug text NOT NULL,
  tool_b_slug text NOT NULL,
  winner_slug text NOT NULL
);
CREATE INDEX comparisonversion_slug_since_release ON comparisons_versions (slug, since_release);
CREATE INDEX comparisonversion_until_release ON comparisons_versions (until_release);

-- The words of tools, for the search in memory: package search fills it.

CREATE TABLE tool_search (
  id integer NOT NULL,
  slug text NOT NULL,
  words text NOT NULL,
  since_release integer NOT NULL DEFAULT (1),
  until_release integer NOT NULL DEFAULT (2147483647),
  PRIMARY KEY (id)
);
CREATE UNIQUE INDEX tool_search_by_slug ON tool_search (slug, until_release);

-- Releases, and what each of them changed.

CREATE TABLE releases (
  number integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  feed_date text NOT NULL,
  imported_at datetime NOT NULL,
  tools_total integer NOT NULL,
  tools_tested integer NOT NULL,
  tools_avg_score real NULL,
  tools_retired integer NOT NULL,
  comparisons_total integer NOT NULL,
  history_from integer NOT NULL DEFAULT (1)
);

CREATE TABLE journal_entries (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  kind text NOT NULL,
  slug text NOT NULL,
  event text NULL,
  category text NOT NULL DEFAULT (''),
  other_category text NOT NULL DEFAULT (''),
  before text NULL,
  after text NULL,
  release_number integer NOT NULL,
  CONSTRAINT journal_entries_releases_journal FOREIGN KEY (release_number) REFERENCES releases (number) ON DELETE NO ACTION
);
CREATE INDEX journal_by_event ON journal_entries (event, id);
CREATE INDEX journal_by_slug ON journal_entries (slug);

-- Accounts, and what gives access to them. Hashes are SHA-256.

CREATE TABLE accounts (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  email text NOT NULL,
  plan text NOT NULL,
  manual_plan bool NOT NULL DEFAULT (false),
  handle text NULL,
  language text NOT NULL DEFAULT ('en'),
  created_at datetime NOT NULL,
  carried_day text NULL,
  carried_requests integer NOT NULL DEFAULT (0)
);
CREATE UNIQUE INDEX accounts_email_key ON accounts (email);
CREATE UNIQUE INDEX accounts_handle_key ON accounts (handle);

CREATE TABLE former_handles (
  id text NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE api_keys (
  id text NOT NULL,
  name text NOT NULL,
  secret_hash blob NOT NULL,
  created_at datetime NOT NULL,
  last_used_at datetime NULL,
  revoked_at datetime NULL,
  account_id integer NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT api_keys_accounts_keys FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE NO ACTION
);
CREATE INDEX apikey_account_id ON api_keys (account_id);

CREATE TABLE sessions (
  id text NOT NULL,
  created_at datetime NOT NULL,
  expires_at datetime NOT NULL,
  user_agent text NOT NULL DEFAULT (''),
  key_id text NULL,
  key_hash blob NULL,
  account_id integer NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT sessions_accounts_sessions FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE NO ACTION
);
CREATE UNIQUE INDEX sessions_key_id_key ON sessions (key_id);
CREATE INDEX session_account_id ON sessions (account_id);
CREATE INDEX session_expires_at ON sessions (expires_at);

CREATE TABLE confirmations (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  purpose text NOT NULL,
  email text NOT NULL,
  mailbox text NOT NULL,
  sender text NOT NULL,
  wider_sender text NOT NULL DEFAULT (''),
  link_hash text NOT NULL,
  browser_hash text NOT NULL,
  code_hash text NOT NULL,
  tries integer NOT NULL DEFAULT (0),
  created_at datetime NOT NULL,
  expires_at datetime NOT NULL,
  used_at datetime NULL,
  account_id integer NULL,
  CONSTRAINT confirmations_accounts_confirmations FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE SET NULL
);
CREATE UNIQUE INDEX confirmations_link_hash_key ON confirmations (link_hash);
CREATE UNIQUE INDEX confirmations_browser_hash_key ON confirmations (browser_hash);
CREATE INDEX confirmation_mailbox_created_at ON confirmations (mailbox, created_at);
CREATE INDEX confirmation_sender_created_at ON confirmations (sender, created_at);
CREATE INDEX confirmation_wider_sender_created_at ON confirmations (wider_sender, created_at);
CREATE INDEX confirmation_created_at ON confirmations (created_at);
CREATE INDEX confirmation_account_id ON confirmations (account_id);

-- Applications that accounts have connected. Times are seconds since 1970.

CREATE TABLE oauth_grants (
  id text NOT NULL,
  account_id integer NOT NULL,
  client_id text NOT NULL,
  client_name text NOT NULL,
  client_host text NOT NULL,
  verified bool NOT NULL,
  private_queries bool NOT NULL DEFAULT (false),
  resource text NOT NULL,
  redirect_uri text NOT NULL,
  challenge text NOT NULL,
  code_hash text NOT NULL,
  code_expires_at integer NOT NULL,
  access_id text NULL,
  access_hash text NOT NULL DEFAULT (''),
  access_expires_at integer NOT NULL DEFAULT (0),
  refresh_hash text NOT NULL DEFAULT (''),
  refresh_expires_at integer NOT NULL DEFAULT (0),
  created_at integer NOT NULL,
  last_used_at integer NOT NULL DEFAULT (0),
  PRIMARY KEY (id),
  CONSTRAINT oauth_grants_accounts FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX oauth_grants_access_id_key ON oauth_grants (access_id);
CREATE INDEX oauth_grants_account_id ON oauth_grants (account_id);
CREATE INDEX oauth_grants_client_id ON oauth_grants (client_id);

-- Saved queries and downloads.

CREATE TABLE saved_queries (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  name text NOT NULL,
  hash text NOT NULL,
  description text NOT NULL DEFAULT (''),
  public bool NOT NULL,
  token_hash text NULL,
  broken_reason text NOT NULL DEFAULT (''),
  notify_owner bool NOT NULL DEFAULT (false),
  created_at datetime NOT NULL,
  updated_at datetime NOT NULL,
  account_id integer NOT NULL,
  CONSTRAINT saved_queries_accounts_saved_queries FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX saved_queries_token_hash_key ON saved_queries (token_hash);
CREATE UNIQUE INDEX savedquery_account_id_name ON saved_queries (account_id, name);
CREATE INDEX savedquery_notify_owner ON saved_queries (notify_owner) WHERE notify_owner;

CREATE TABLE query_versions (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  hash text NOT NULL,
  text text NOT NULL,
  public bool NOT NULL,
  created_at datetime NOT NULL,
  account_id integer NOT NULL,
  CONSTRAINT query_versions_accounts_query_versions FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX queryversion_hash_account_id ON query_versions (hash, account_id);
CREATE INDEX queryversion_account_id_created_at ON query_versions (account_id, created_at);

CREATE TABLE download_tokens (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  name text NOT NULL,
  token_hash text NOT NULL,
  created_at datetime NOT NULL,
  last_used_at datetime NULL,
  account_id integer NOT NULL,
  CONSTRAINT download_tokens_accounts_download_tokens FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX download_tokens_token_hash_key ON download_tokens (token_hash);
CREATE INDEX downloadtoken_account_id ON download_tokens (account_id);

-- Requests that count against quotas.

CREATE TABLE usages (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  day text NOT NULL,
  requests integer NOT NULL,
  account_id integer NOT NULL,
  CONSTRAINT usages_accounts_usage FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE NO ACTION
);
CREATE UNIQUE INDEX usage_account_id_day ON usages (account_id, day);

CREATE TABLE key_usages (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  account_id integer NOT NULL,
  day text NOT NULL,
  key text NOT NULL,
  endpoint text NOT NULL,
  requests integer NOT NULL
);
CREATE UNIQUE INDEX keyusage_account_id_day_key_endpoint ON key_usages (account_id, day, key, endpoint);
CREATE INDEX keyusage_day ON key_usages (day);

CREATE TABLE former_usages (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  email_hash text NOT NULL,
  day text NOT NULL,
  account_id integer NOT NULL,
  requests integer NOT NULL
);
CREATE INDEX formerusage_day_email_hash ON former_usages (day, email_hash);
CREATE UNIQUE INDEX formerusage_account_id_day_email_hash ON former_usages (account_id, day, email_hash);

CREATE TABLE count_batches (
  id text NOT NULL,
  day text NOT NULL,
  counts blob NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX countbatch_day ON count_batches (day);

-- Billing.

CREATE TABLE customers (
  id text NOT NULL,
  email text NOT NULL DEFAULT (''),
  subscription text NOT NULL DEFAULT (''),
  status text NOT NULL DEFAULT (''),
  period_end datetime NULL,
  cancels bool NOT NULL DEFAULT (false),
  past_due_since datetime NULL,
  notified_at datetime NULL,
  checkout_at datetime NULL,
  revision integer NOT NULL DEFAULT (0),
  created_at datetime NOT NULL,
  read_at datetime NULL,
  account_id integer NULL,
  PRIMARY KEY (id),
  CONSTRAINT customers_accounts_customer FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE SET NULL
);
CREATE UNIQUE INDEX customers_account_id_key ON customers (account_id);
CREATE INDEX customer_status ON customers (status);

CREATE TABLE billing_events (
  id text NOT NULL,
  type text NOT NULL,
  applied_at datetime NOT NULL,
  PRIMARY KEY (id)
);
CREATE INDEX billingevent_applied_at ON billing_events (applied_at);

-- Webhooks.

CREATE TABLE endpoints (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  url text NOT NULL,
  types json NOT NULL,
  categories json NOT NULL,
  batches bool NOT NULL DEFAULT (false),
  secret text NOT NULL,
  former_secret text NOT NULL DEFAULT (''),
  former_until datetime NULL,
  state text NOT NULL DEFAULT ('active'),
  disabled_reason text NOT NULL DEFAULT (''),
  position integer NOT NULL,
  failures integer NOT NULL DEFAULT (0),
  failing_since datetime NULL,
  delivered_at datetime NULL,
  not_before datetime NULL,
  notify_owner bool NOT NULL DEFAULT (false),
  leased_by text NOT NULL DEFAULT (''),
  leased_until datetime NULL,
  created_at datetime NOT NULL,
  account_id integer NOT NULL,
  CONSTRAINT endpoints_accounts_endpoints FOREIGN KEY (account_id) REFERENCES accounts (id) ON DELETE CASCADE
);
CREATE INDEX endpoint_account_id ON endpoints (account_id);
CREATE INDEX endpoint_state_position ON endpoints (state, position);

CREATE TABLE deliveries (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  event integer NOT NULL,
  attempts integer NOT NULL DEFAULT (0),
  next_at datetime NOT NULL,
  batch integer NOT NULL DEFAULT (0),
  held bool NOT NULL DEFAULT (false),
  endpoint_id integer NOT NULL,
  CONSTRAINT deliveries_endpoints_deliveries FOREIGN KEY (endpoint_id) REFERENCES endpoints (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX delivery_endpoint_id_event ON deliveries (endpoint_id, event);
CREATE INDEX delivery_next_at ON deliveries (next_at);

CREATE TABLE attempts (
  id integer NOT NULL PRIMARY KEY AUTOINCREMENT,
  event integer NOT NULL,
  events json NULL,
  type text NOT NULL,
  number integer NOT NULL,
  at datetime NOT NULL,
  status integer NOT NULL,
  took_ms integer NOT NULL,
  response text NOT NULL,
  delivered bool NOT NULL,
  test_body text NOT NULL DEFAULT (''),
  endpoint_id integer NOT NULL,
  CONSTRAINT attempts_endpoints_attempts FOREIGN KEY (endpoint_id) REFERENCES endpoints (id) ON DELETE CASCADE
);
CREATE INDEX attempt_endpoint_id_at ON attempts (endpoint_id, at);
CREATE INDEX attempt_at ON attempts (at);
CREATE INDEX attempt_failed ON attempts (endpoint_id, at) WHERE NOT delivered;

-- What servers share.

CREATE TABLE minutes (
  id integer NOT NULL,
  checks integer NOT NULL,
  failed integer NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE secrets (
  id text NOT NULL,
  value blob NOT NULL,
  PRIMARY KEY (id)
);

INSERT INTO secrets (id, value) VALUES ('etag', randomblob(32)), ('email', randomblob(32)), ('oauth', randomblob(32));
