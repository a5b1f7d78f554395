-- How often the provider is still asked about an order that ended without a sale: its money may have been taken since,
-- and the webhook lost. poll_ms says when.
ALTER TABLE orders ADD COLUMN asks_left BIGINT NOT NULL DEFAULT 0;
CREATE INDEX orders_to_ask_late ON orders (poll_ms) WHERE asks_left > 0;
