-- The ledger. Times are milliseconds since the Unix epoch; money is in the currency's minor unit; flags are 0 or 1.

CREATE TABLE events (
    id            TEXT   PRIMARY KEY,
    name          TEXT   NOT NULL,
    currency      TEXT   NOT NULL,
    price_minor   BIGINT NOT NULL CHECK (price_minor > 0),
    -- General admission. The check is the last word against selling more than there are.
    tickets_total BIGINT NOT NULL,
    tickets_taken BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT tickets_never_oversold CHECK (tickets_taken BETWEEN 0 AND tickets_total)
);

CREATE TABLE orders (
    id            TEXT   PRIMARY KEY,
    event         TEXT   NOT NULL REFERENCES events (id),
    -- One hold becomes at most one order.
    hold          TEXT   NOT NULL UNIQUE,
    status        TEXT   NOT NULL CHECK (status IN ('pending', 'confirmed', 'refused', 'expired', 'refunded')),
    quantity      BIGINT NOT NULL CHECK (quantity > 0),
    amount_minor  BIGINT NOT NULL CHECK (amount_minor > 0),
    currency      TEXT   NOT NULL,
    created_ms    BIGINT NOT NULL,
    -- The visit it was placed in, as the gateway in front names it.
    visit         TEXT,
    -- When to ask the provider about a pending order.
    poll_ms       BIGINT NOT NULL,
    -- 1 while the inventory has not yet been told of the present status.
    inventory_due BIGINT NOT NULL DEFAULT 0 CHECK (inventory_due IN (0, 1))
);
CREATE INDEX orders_to_poll ON orders (poll_ms) WHERE status = 'pending';
CREATE INDEX orders_to_tell ON orders (id) WHERE inventory_due = 1;

CREATE TABLE order_items (
    order_id TEXT   NOT NULL REFERENCES orders (id),
    position BIGINT NOT NULL,
    event    TEXT   NOT NULL REFERENCES events (id),
    seat     TEXT   NOT NULL,
    -- 0 once the order was refused or expired: the seat may be sold to another.
    active   BIGINT NOT NULL DEFAULT 1 CHECK (active IN (0, 1)),
    PRIMARY KEY (order_id, position)
);
-- One seat, one buyer: whatever the inventory says, this is the last word.
CREATE UNIQUE INDEX one_seat_one_buyer ON order_items (event, seat) WHERE active = 1;

-- What a client was answered under a key, so that a retry gets the same answer.
CREATE TABLE idempotency_keys (
    scope       TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    fingerprint TEXT   NOT NULL,
    status      BIGINT NOT NULL,
    answer      TEXT   NOT NULL,
    created_ms  BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_ms);

-- Calls to the provider still to be made. The subject is an order to charge, or a charge to refund.
CREATE TABLE outbox (
    kind           TEXT   NOT NULL CHECK (kind IN ('charge', 'refund')),
    subject        TEXT   NOT NULL,
    order_id       TEXT   NOT NULL REFERENCES orders (id),
    state          TEXT   NOT NULL CHECK (state IN ('due', 'done', 'dead')),
    attempts       BIGINT NOT NULL DEFAULT 0,
    not_before_ms  BIGINT NOT NULL,
    -- Whoever works on it has until then; afterwards another may.
    lease_until_ms BIGINT NOT NULL DEFAULT 0,
    last_error     TEXT,
    PRIMARY KEY (kind, subject)
);
CREATE INDEX outbox_due ON outbox (not_before_ms) WHERE state = 'due';
CREATE INDEX outbox_by_order ON outbox (order_id);

-- What the provider told us. 'mismatched': paid, but not what was ordered; for a person to look at.
CREATE TABLE payments (
    charge       TEXT   PRIMARY KEY,
    order_id     TEXT   NOT NULL REFERENCES orders (id),
    state        TEXT   NOT NULL CHECK (state IN ('captured', 'declined', 'refunded', 'mismatched')),
    amount_minor BIGINT NOT NULL,
    currency     TEXT   NOT NULL,
    updated_ms   BIGINT NOT NULL
);
CREATE INDEX payments_by_order ON payments (order_id);

CREATE TABLE webhook_events (
    id          TEXT   PRIMARY KEY,
    received_ms BIGINT NOT NULL
);
