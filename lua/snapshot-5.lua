-- Purpose: the room at one instant, in numbers. Only reads. Positions are `sketch-5.lua`'s.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state
-- ARGV: none
-- Reply: now ms, since ms, settle until ms, epoch, mode, opens at ms (0: unset), capacity, rate as text, waiting, called,
--   inside, watermark, joined, called, admitted and missed in total

if not load_state() then
  return NOT_CONFIGURED
end
return {
  now_ms, state.since_ms, state.settle_until_ms, state.epoch, mode(), state.opens_at_ms, state.capacity,
  text(state.rate), redis.call('ZCARD', LINE), redis.call('ZCARD', CALLED), redis.call('ZCARD', INSIDE),
  state.watermark, state.joined_total, state.called_total, state.admitted_total, state.no_shows_total,
}
