-- Purpose: the room at one instant, in numbers. Only reads. Positions are `sketch-5.lua`'s.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: up to where the caller knows who was ended, us
-- Reply: now ms, since ms, settle until ms, epoch, mode, opens at ms (0: unset), capacity, rate as text, waiting, called,
--   inside, watermark, joined, called, admitted and missed in total, closes at ms (0: never), 1 for a lottery, how many are in
--   the roster, or were when it was closed, 1 when they drew, the arrival up to which they did, when the history began whose roster was closed, when the last of
--   that roster came, us; the draw's commitment, digest and public value or ''; who was
--   ended since, at most 1,000, as text: visitor, when in us, visitor, …

if not load_state() then
  return NOT_CONFIGURED
end
-- The store may have lost a roster since it was closed.
local roster = state.sealed_count > 0 and state.sealed_count or redis.call('ZCARD', ROSTER)
local reply = {
  now_ms, state.since_ms, state.settle_until_ms, state.epoch, mode(), state.opens_at_ms, state.capacity,
  text(state.rate), redis.call('ZCARD', LINE), redis.call('ZCARD', CALLED), redis.call('ZCARD', INSIDE),
  state.watermark, state.joined_total, state.called_total, state.admitted_total, state.no_shows_total,
  state.closes_at_ms, state.lottery, roster, state.drawn, state.drawn_to,
  state.sealed_since_ms, state.sealed_until,
}
local facts = redis.call('HMGET', STATE, unpack(DRAW_FACTS))
for i = 1, #DRAW_FACTS do
  reply[#reply + 1] = facts[i] or ''
end
local over = redis.call('ZRANGEBYSCORE', OVER, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
reply[#reply + 1] = table.concat(over, ' ')
return reply
