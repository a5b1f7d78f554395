-- Purpose: takes what one node measured, hands out what all nodes measured of late, and grants one of them the lease to
--   decide about the rate. Losing the lease in between costs a second, nothing more: `decide` checks it again.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster,
--   KEYS[9] nodes (hash: node -> when it reported in ms, its report)
-- ARGV: node (a number from 1 to 2^53 - 1), its report, how long the lease lasts in ms
-- Reply: 1 if this node holds the lease else 0, now ms, when the policy was last configured in us, capacity and rate as text
--   as configured; capacity, rate and call rate as text in force, the reason for those (a number of `decide`'s caller);
--   called, inside, called, admitted and missed in total; then two per node by order of their ids: age of its report in ms,
--   the report
--
-- Bound: 64 nodes, each heard of in the last 10 s.

if not load_state() then
  return NOT_CONFIGURED
end
local NODES, MOST, FRESH_MS = KEYS[9], 64, 10000
local node, report, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])

local reports, gone = {}, {}
local known = redis.call('HGETALL', NODES)
for i = 1, #known, 2 do
  local at_ms, said = string.match(known[i + 1], '^(%d+) (.*)$')
  -- Only who holds the lease writes how late it is, so that after a step back of the clock a report can be of later.
  local age_ms = math.max(0, now_ms - (tonumber(at_ms) or 0))
  if known[i] ~= node and age_ms <= FRESH_MS then
    table.insert(reports, { known[i], age_ms, said })
  elseif known[i] ~= node then
    table.insert(gone, known[i])
  end
end
if #gone > 0 then
  redis.call('HDEL', NODES, unpack(gone))
end
if #reports < MOST then
  redis.call('HSET', NODES, node, text(now_ms) .. ' ' .. report)
  table.insert(reports, { node, 0, report })
end
table.sort(reports, function(a, b)
  return a[1] < b[1]
end)

local holds = state.lease_owner == tonumber(node)
if holds or state.lease_until_ms <= now_ms then
  holds = true
  set('lease_owner', tonumber(node))
  set('lease_until_ms', now_ms + lease_ms)
  save()
end

local reply = {
  holds and 1 or 0, now_ms, state.configured_us, state.set_capacity, text(state.set_rate), state.capacity, text(state.rate),
  text(state.call_rate), state.reason, redis.call('ZCARD', CALLED), redis.call('ZCARD', INSIDE), state.called_total,
  state.admitted_total, state.no_shows_total,
}
for _, entry in ipairs(reports) do
  append(reply, { entry[2], entry[3] })
end
return reply
