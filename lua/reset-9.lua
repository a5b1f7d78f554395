-- Purpose: begins a new epoch: nobody waits, nobody is inside, no token of before counts. The policy stays.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster,
--   KEYS[9] nodes
-- ARGV: the epoch that ends: a repeat after it did changes nothing
-- Reply: the epoch that holds now

if not load_state() then
  return NOT_CONFIGURED
end
if state.epoch ~= tonumber(ARGV[1]) then
  return state.epoch
end
local KEPT = {
  'capacity', 'rate', 'burst', 'claim_ms', 'session_ms', 'absent_ms', 'grace_ms', 'opens_at_ms', 'settle_ms',
  'prequeue_at_ms', 'closes_at_ms', 'lottery', 'last_score', 'last_over', 'call_rate', 'set_capacity', 'set_rate',
  'configured_us', 'lease_owner', 'lease_until_ms', 'reason',
}
local kept = {}
for _, field in ipairs(KEPT) do
  kept[field] = state[field]
end
local epoch = state.epoch + 1
-- Not DEL: a million members are freed beside the commands that follow.
redis.call('UNLINK', LINE, SEEN, CALLED, INSIDE, STATE, NOTES, OVER, ROSTER)
for _, field in ipairs(FIELDS) do
  set(field, kept[field] or 0)
end
set('epoch', epoch)
set('mode', OPEN)
set('since_ms', now_ms)
set('settle_until_ms', now_ms)
set('watched_ms', now_ms)
set('resumed_ms', now_ms)
for _, bucket in ipairs({ 'call', 'entry' }) do
  set(bucket .. '_at_us', now_us)
end
redis.call('HSET', STATE, 'server', server())
save()
return epoch
