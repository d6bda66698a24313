// Word counting in C++, one thread: normalize() takes about three quarters of the time,
// count() the rest. Usage: words [ROUNDS]
#include <causal.h>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

namespace text {

// Kept as functions of their own in every build, so that they can be asked about by name.
#define STAGE __attribute__((noinline))

STAGE std::string normalize(const std::string &word)
{
	std::string result;
	for (char c : word)
		if (std::isalnum(static_cast<unsigned char>(c)))
			result.insert(result.end(), 1, static_cast<char>(std::tolower(c)));
	return result;
}

class counter {
public:
	STAGE void count(const std::string &word)
	{
		++seen_[word];
		for (std::size_t length : {3, 6, 9})
			++seen_[word.substr(0, length)];
	}
	std::size_t size() const { return seen_.size(); }

private:
	std::unordered_map<std::string, unsigned> seen_;
};

} // namespace text

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? std::atoi(argv[1]) : 3500;
	std::vector<std::string> words;
	for (unsigned i = 0; i < 2000; i++)
		words.push_back("\"Some-Long-Word." + std::to_string(i * 7919 % 500) + "\",");
	text::counter counter;
	for (int i = 0; i < rounds; i++) {
		for (const std::string &word : words)
			counter.count(text::normalize(word));
		CAUSAL_PROGRESS;
	}
	std::printf("%zu words\n", counter.size());
}
