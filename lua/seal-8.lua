-- Purpose: publishes what the draw hangs on, each once: before it the commitment to the seed, when the pre-queue closed the
--   roster's digest, then the public value. What is published stays, whoever comes second.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: the epoch they are of, commitment, digest, public value, '' for none; of how many the digest is: a roster to which
--   somebody came back meanwhile has another. '' for a digest that was public before a loss, and then when the history began
--   in which it was closed, ms, of how many it is, and when the last of them came, us
-- Reply: commitment, digest and public value as they are published now, '' for none

if not load_state() then
  return NOT_CONFIGURED
end
if state.epoch == tonumber(ARGV[1]) and state.lottery == 1 then
  local closed = mode() == DRAWING and now_ms >= state.settle_until_ms
  local is_whole = ARGV[5] == '' or redis.call('ZCARD', ROSTER) == tonumber(ARGV[5])
  local may_be_public = {
    commitment = function() return true end,
    digest = function() return closed and is_whole end,
    public = function() return closed and is_sealed() end,
  }
  for i, fact in ipairs(DRAW_FACTS) do
    if ARGV[1 + i] ~= '' and may_be_public[fact]() then
      local is_first = redis.call('HSETNX', STATE, fact, ARGV[1 + i]) == 1
      if is_first and fact == 'digest' then
        set('sealed_since_ms', tonumber(ARGV[6]) or state.since_ms)
        local count = redis.call('ZCARD', ROSTER)
        local last = count > 0 and redis.call('ZRANGE', ROSTER, count - 1, count - 1, 'WITHSCORES')[2]
        set('sealed_count', tonumber(ARGV[7]) or count)
        set('sealed_until', tonumber(ARGV[8]) or tonumber(last or 0))
        save()
      end
    end
  end
end
local reply = redis.call('HMGET', STATE, unpack(DRAW_FACTS))
for i = 1, #DRAW_FACTS do
  reply[i] = reply[i] or ''
end
return reply
