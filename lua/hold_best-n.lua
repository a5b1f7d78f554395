-- Purpose: hold the first seats of a choice that are free, all that are wanted or none, until a deadline.
-- KEYS: KEYS[1...3] see holds.lua; KEYS[4...] the choice, at most 300 seats and none twice: blocks of as many neighbours
--   as are wanted, the best block first, then single seats, the best first
-- ARGV: ARGV[1...2] see holds.lua; ARGV[3] how many seats are wanted; ARGV[4] how many blocks there are; ARGV[5] names of
--   the seats, separated by commas
-- Reply: {1, deadline in ms, ms until then, names of the seats} held, the first free block, or the first free single
--   seats when no block is, by this call or an earlier one; {0, i, ...} the i-th seats are taken, and too few are free;
--   {-1}, {-2}, {-3} see holds.lua

local reply = known(ARGV[3], nil)
if reply then
  return reply
end

local wanted = tonumber(ARGV[3])
local singles = tonumber(ARGV[4]) * wanted + 1
local holders = redis.call('MGET', unpack(KEYS, 4))

-- The free ones among the first to the last; nothing when they are fewer than wanted.
local function free_among(first, last)
  local free = {}
  for i = first, last do
    if not holders[i] then
      free[#free + 1] = i
      if #free == wanted then
        return free
      end
    end
  end
  return nil
end

local chosen
for first = 1, singles - 1, wanted do
  chosen = chosen or free_among(first, first + wanted - 1)
end
chosen = chosen or free_among(singles, #KEYS - 3)
if not chosen then
  local taken = {0}
  for i = 1, #KEYS - 3 do
    if holders[i] then
      taken[#taken + 1] = i
    end
  end
  return taken
end

local names, all = {}, {}
for name in string.gmatch(ARGV[5], '[^,]+') do
  all[#all + 1] = name
end
for at, i in ipairs(chosen) do
  names[at] = all[i]
  redis.call('SET', KEYS[i + 3], ARGV[1], 'NX', 'PX', ARGV[2])
end
return taken_by_hold(ARGV[3], table.concat(names, ','))
