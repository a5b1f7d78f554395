-- Purpose: the room at one instant, and a sketch of the line that answers any position. Only reads.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] over, KEYS[7] roster
-- ARGV: up to where the caller knows who was ended, us
-- Reply: now ms, since ms, settle until ms, epoch, mode, opens at ms (0: unset), capacity, rate as text, waiting, called,
--   inside, watermark, joined, called, admitted and missed in total, closes at ms (0: never), 1 for a lottery, how many are in
--   the roster, 1 when they drew, the arrival up to which they did; the draw's commitment, digest and public value or ''; who was
--   ended since, at most 1,000, as text: visitor, when in us, visitor, …; then the sketch of those set aside and of the rest,
--   four each: how many they are, the first 1,000 scores as text; the ranks of some behind, their scores as text
--
-- Bound: 2 * (1,000 scores in one range + 512 single ranks), whatever the length.

if not load_state() then
  return NOT_CONFIGURED
end
local EXACT, POINTS = 1000, 512
local length = redis.call('ZCARD', LINE)
local departed = state.joined_total - length

local function scores(first, last, shift, into)
  local range = redis.call('ZRANGE', LINE, first, last, 'WITHSCORES')
  local count = #into
  for i = 2, #range, 2 do
    count = count + 1
    -- Redis writes scores as `text` does; only those set aside need arithmetic.
    into[count] = shift == 0 and range[i] or text(tonumber(range[i]) + shift)
  end
end

-- The part of the line that begins at rank `first`. Behind the exact scores, every step-th visitor in order of
-- joining is a point, not every step-th rank: while the line is served from the front the points stay the same
-- people, and an interpolated position only falls. The last of the line is always a point.
local function sketch(first, count, shift)
  local exact, ranks, points = {}, {}, {}
  if count > 0 then
    scores(first, first + math.min(count, EXACT) - 1, shift, exact)
  end
  local step = 1
  while (count - EXACT) / step > POINTS - 2 do
    step = step * 2
  end
  for rank = EXACT + (-(first + EXACT + departed)) % step, count - 2, step do
    ranks[#ranks + 1] = rank
    scores(first + rank, first + rank, shift, points)
  end
  if count > EXACT then
    ranks[#ranks + 1] = count - 1
    scores(first + count - 1, first + count - 1, shift, points)
  end
  return count, table.concat(exact, ' '), table.concat(ranks, ' '), table.concat(points, ' ')
end

local aside = redis.call('ZCOUNT', LINE, '-inf', '(0')
local reply = {
  now_ms, state.since_ms, state.settle_until_ms, state.epoch, mode(), state.opens_at_ms, state.capacity,
  text(state.rate), length, redis.call('ZCARD', CALLED), redis.call('ZCARD', INSIDE), state.watermark,
  state.joined_total, state.called_total, state.admitted_total, state.no_shows_total, state.closes_at_ms, state.lottery,
  redis.call('ZCARD', ROSTER), state.drawn, state.drawn_to,
}
local facts = redis.call('HMGET', STATE, unpack(DRAW_FACTS))
for i = 1, #DRAW_FACTS do
  reply[#reply + 1] = facts[i] or ''
end
local over = redis.call('ZRANGEBYSCORE', OVER, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
reply[#reply + 1] = table.concat(over, ' ')
append(reply, { sketch(0, aside, ASIDE) })
append(reply, { sketch(aside, length - aside, 0) })
return reply
