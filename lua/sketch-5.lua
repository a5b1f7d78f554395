-- Purpose: measures the line at chosen scores, and finds scores at chosen distances behind them. Only reads.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state
-- ARGV: any number of walks, each: a score, how many distances, the distances
-- Reply: since ms, epoch, how many wait, the last one's score as text; then, as two lists in text, scores and how many
--   come before each: of every walk its own score and, for each distance, the visitor that far behind it (closer, but
--   not by more than about half, where some are set aside behind it; left out behind the end)
--
-- Whoever is set aside is counted at their true place. Bound: up to 7 single look-ups, O(log n), per number in ARGV; the
-- caller sends about a hundred and thirty at most.

-- Not the whole state: this runs often, and asks neither clock nor policy.
local history = redis.call('HMGET', STATE, 'since_ms', 'epoch')
if not history[1] then
  return NOT_CONFIGURED
end
local length = redis.call('ZCARD', LINE)
local aside = redis.call('ZCOUNT', LINE, '-inf', '(0')

-- By index in the sorted set, which has those set aside in front.
local function score_at(index)
  return redis.call('ZRANGE', LINE, index, index, 'WITHSCORES')[2]
end

local function true_score_at(index)
  return text(tonumber(score_at(index)) + ASIDE)
end

local last_aside = aside > 0 and tonumber(true_score_at(aside - 1)) or -1

local function aside_before(score)
  return redis.call('ZCOUNT', LINE, '-inf', '(' .. text(tonumber(score) - ASIDE))
end

-- The index of the first of the rest who is not before `score`.
local function index_of(score)
  return redis.call('ZCOUNT', LINE, '-inf', '(' .. score)
end

local scores, ranks = {}, {}
local function note(score, rank)
  scores[#scores + 1] = score
  ranks[#ranks + 1] = rank
end

-- The nearer of two visitors behind `score`, each half as far in their own part of the line.
local function find_in_both(score, distance)
  local half = math.ceil(distance / 2) - 1
  local found = score_at(redis.call('ZCOUNT', LINE, '-inf', score) + half)
  local at_aside = redis.call('ZCOUNT', LINE, '-inf', text(tonumber(score) - ASIDE)) + half
  if at_aside < aside then
    local other = true_score_at(at_aside)
    if not found or tonumber(other) < tonumber(found) then
      found = other
    end
  end
  if found then
    note(found, index_of(found) - aside + aside_before(found))
  end
end

local i = 1
while ARGV[i] do
  local score, count = ARGV[i], tonumber(ARGV[i + 1])
  local index = index_of(score)
  if tonumber(score) > last_aside then
    note(score, index)
    for j = i + 2, i + 1 + count do
      local distance = tonumber(ARGV[j])
      local found = score_at(index + distance)
      if found then
        note(found, index + distance)
      end
    end
  else
    note(score, index - aside + aside_before(score))
    for j = i + 2, i + 1 + count do
      find_in_both(score, tonumber(ARGV[j]))
    end
  end
  i = i + 2 + count
end

local last = length > 0 and score_at(length - 1) or '0'
if tonumber(last) < last_aside then
  last = text(last_aside)
end
return { tonumber(history[1]), tonumber(history[2]), length, last, table.concat(scores, ' '), table.concat(ranks, ' ') }
