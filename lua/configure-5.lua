-- Purpose: writes the policy. Creates the room's state when there is none.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state
-- ARGV: capacity, rate, burst, claim window ms, session ms, absent after ms, grace ms, opens at ms (0: at once), settle ms
--   (of a new state: how long nobody is called or let straight in)
-- Reply: 1 if the state was created, else 0

local created = not load_state()
if created then
  read_clock()
  local settle_ms = tonumber(ARGV[9])
  -- With a history that may have been lost, its last burst may be a moment ago.
  local first_tokens = settle_ms > 0 and 0 or tonumber(ARGV[3])
  for _, field in ipairs(FIELDS) do
    set(field, 0)
  end
  set('since_ms', now_ms)
  set('settle_until_ms', now_ms + settle_ms)
  set('watched_ms', now_ms)
  set('resumed_ms', now_ms)
  set('epoch', 1)
  set('mode', OPEN)
  for _, bucket in ipairs({ 'call', 'entry' }) do
    set(bucket .. '_tokens', first_tokens)
    set(bucket .. '_at_us', now_us)
  end
else
  -- What has flowed so far flowed at the old rate.
  take('call', 0)
  take('entry', 0)
end
local policy = { 'set_capacity', 'set_rate', 'burst', 'claim_ms', 'session_ms', 'absent_ms', 'grace_ms', 'opens_at_ms' }
local before_capacity, before_rate = state.set_capacity, state.set_rate
for i, field in ipairs(policy) do
  set(field, tonumber(ARGV[i]))
end
-- What `decide` put into force stays while the policy is the same: a node that starts in mid-sale undoes nothing.
if created or before_capacity ~= state.set_capacity then
  set('capacity', state.set_capacity)
end
if created or before_rate ~= state.set_rate then
  set('rate', state.set_rate)
  set('call_rate', state.set_rate)
end
set('configured_us', now_us)
save()
return created and 1 or 0
