-- Purpose: writes the policy. Creates the room's state when there is none, as far as the caller remembers it; also when the
--   store fell back to before a reset, whose line and tokens count no more.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: 1 to 12 the policy: capacity, rate, burst, claim window ms, session ms, absent after ms, grace ms, opens at ms (0: at
--   once), settle ms, pre-queue opens at ms (0: none), closes at ms (0: never), 1 for a lottery; 13 the epoch that was reached;
--   of a new state: 14 how long nobody is called or let straight in, ms; 15 mode; 16 whether the draw is done; 17 to 19 the
--   draw's commitment, digest and public value, '' for none; 20 when the history began in which its roster was closed, ms;
--   21 how many were in it, 22 when the last of them came, us
-- Reply: 1 if the state was created, else 0

local POLICY = {
  'set_capacity', 'set_rate', 'burst', 'claim_ms', 'session_ms', 'absent_ms', 'grace_ms', 'opens_at_ms', 'settle_ms',
  'prequeue_at_ms', 'closes_at_ms', 'lottery',
}
local epoch, settle_ms = tonumber(ARGV[13]), tonumber(ARGV[14])

local function create()
  local last_score, last_over = state.last_score or 0, state.last_over or 0
  read_clock()
  -- With a history that may have been lost, its last burst may be a moment ago.
  local first_tokens = settle_ms > 0 and 0 or tonumber(ARGV[3])
  for _, field in ipairs(FIELDS) do
    set(field, 0)
  end
  set('last_score', last_score)
  set('last_over', last_over)
  set('since_ms', now_ms)
  set('settle_until_ms', now_ms + settle_ms)
  set('watched_ms', now_ms)
  set('resumed_ms', now_ms)
  set('mode', tonumber(ARGV[15]))
  set('drawn', tonumber(ARGV[16]))
  set('sealed_since_ms', tonumber(ARGV[20]))
  set('sealed_count', tonumber(ARGV[21]))
  set('sealed_until', tonumber(ARGV[22]))
  for _, bucket in ipairs({ 'call', 'entry' }) do
    set(bucket .. '_tokens', first_tokens)
    set(bucket .. '_at_us', now_us)
  end
  redis.call('HSET', STATE, 'server', server())
  for i, fact in ipairs(DRAW_FACTS) do
    if ARGV[16 + i] ~= '' then
      redis.call('HSET', STATE, fact, ARGV[16 + i])
    end
  end
end

local is_known = load_state()
local created = not is_known or state.epoch < epoch
if created then
  if is_known then
    redis.call('UNLINK', LINE, SEEN, CALLED, INSIDE, STATE, NOTES, OVER, ROSTER)
  end
  create()
else
  -- What has flowed so far flowed at the old rate.
  take('call', 0)
  take('entry', 0)
end
local before_capacity, before_rate = state.set_capacity, state.set_rate
for i, field in ipairs(POLICY) do
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
set('epoch', math.max(state.epoch, epoch))
save()
return created and 1 or 0
