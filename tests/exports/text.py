"""Networks on text, decoders with their past, and modules with loops and branches of their own."""
import torch
from torch import nn
from torch.nn import functional as F

from export import by_torch, export

WORDS = 120


def words(n=2, s=12):
    return {"ids": torch.randint(1, WORDS, (n, s)), "mask": (torch.arange(s) < torch.tensor([s, s - 3, s - 5][:n]).unsqueeze(1)).long()}


FREE = {"ids": {0: "n", 1: "s"}, "mask": {0: "n", 1: "s"}}
OTHER = [{}, {"n": 3, "s": 19}]


class Hidden(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, ids, mask):
        return self.network(input_ids=ids, attention_mask=mask)[0]


class Sentence(Hidden):
    """A vector for a sentence: the mean of its words."""

    def forward(self, ids, mask):
        found = super().forward(ids, mask)
        wide = mask.unsqueeze(-1).float()
        return F.normalize((found * wide).sum(1) / wide.sum(1).clamp(min=1e-9))


def small(**more):
    return {"vocab_size": WORDS, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96} | more


@export("Transformers, legacy")
def bert(path):
    import transformers as tf
    return by_torch(path, Hidden(tf.BertModel(tf.BertConfig(**small(attn_implementation="eager")))), words, FREE, OTHER)


@export("Transformers, dynamo")
def bert_dynamo(path):
    import transformers as tf
    return by_torch(path, Sentence(tf.BertModel(tf.BertConfig(**small()))), words, FREE, OTHER, dynamo=True)


@export("Transformers, dynamo")
def roberta(path):
    import transformers as tf
    return by_torch(path, Hidden(tf.RobertaForSequenceClassification(tf.RobertaConfig(**small()))), words, FREE, OTHER, dynamo=True)


@export("Transformers, dynamo")
def distilbert(path):
    import transformers as tf
    return by_torch(path, Hidden(tf.DistilBertModel(tf.DistilBertConfig(vocab_size=WORDS, dim=48, n_layers=2, n_heads=4, hidden_dim=96))), words, FREE, OTHER, dynamo=True)


@export("Transformers, legacy", tolerance=5e-4)
def deberta(path):
    import transformers as tf
    config = tf.DebertaV2Config(**small(relative_attention=True, position_buckets=16, pos_att_type=["p2c", "c2p"], max_position_embeddings=64, share_att_key=True))
    return by_torch(path, Hidden(tf.DebertaV2Model(config)), words, FREE, OTHER)


@export("Transformers, dynamo")
def llama(path):
    import transformers as tf
    network = tf.LlamaForCausalLM(tf.LlamaConfig(**small(num_key_value_heads=2, use_cache=False)))
    return by_torch(path, Hidden(network), words, FREE, OTHER, dynamo=True)


@export("Transformers, dynamo")
def gpt2(path):
    import transformers as tf
    return by_torch(path, Hidden(tf.GPT2LMHeadModel(tf.GPT2Config(vocab_size=WORDS, n_embd=48, n_layer=2, n_head=4, n_positions=64, use_cache=False))), words, FREE, OTHER, dynamo=True)


@export("Transformers, dynamo")
def t5_encoder(path):
    import transformers as tf
    return by_torch(path, Hidden(tf.T5EncoderModel(tf.T5Config(vocab_size=WORDS, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4))), words, FREE, OTHER, dynamo=True)


class Decoder(nn.Module):
    """One layer of a decoder that is given its past and gives it back longer."""

    def __init__(self, d=32, heads=4):
        super().__init__()
        self.heads, self.embedding, self.places = heads, nn.Embedding(WORDS, d), nn.Embedding(64, d)
        self.qkv, self.join, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, WORDS)

    def forward(self, ids, past_k, past_v):
        n, s = ids.shape
        before = past_k.shape[2]
        x = self.embedding(ids) + self.places(torch.arange(before, before + s))
        q, k, v = (part.view(n, s, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        scores = q @ k.transpose(2, 3) / k.shape[-1] ** 0.5
        later = torch.arange(before + s) > torch.arange(before, before + s).unsqueeze(1)
        y = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(x + self.join(y.transpose(1, 2).reshape(n, s, -1))), k, v


@export("torch, legacy", flags=("--dim", "past=0..63"))
def decoder_with_past(path):
    def make(n=1, s=1, past=5):
        return {"ids": torch.randint(1, WORDS, (n, s)), "past_k": torch.randn(n, 4, past, 8), "past_v": torch.randn(n, 4, past, 8)}
    free = {"ids": {0: "n", 1: "s"}, "past_k": {0: "n", 2: "past"}, "past_v": {0: "n", 2: "past"}}
    return by_torch(path, Decoder(), make, free, [{}, {"n": 2, "s": 7, "past": 0}, {"n": 2, "s": 3, "past": 9}], outputs=3)


@export("torch, legacy")
def language_model(path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.rows, self.out = nn.Embedding(WORDS, 24), nn.LSTM(24, 32, 2), nn.Linear(32, WORDS)

        def forward(self, ids, h, c):
            y, (h, c) = self.rows(self.embedding(ids), (h, c))
            return self.out(y), h, c

    def make(s=7, n=2):
        return {"ids": torch.randint(0, WORDS, (s, n)), "h": torch.zeros(2, n, 32), "c": torch.zeros(2, n, 32)}
    return by_torch(path, Model(), make, {"ids": {0: "s", 1: "n"}, "h": {1: "n"}, "c": {1: "n"}}, [{}, {"s": 11, "n": 3}], outputs=3)


@export("torch, dynamo")
def text_cnn(path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.convs, self.out = nn.Embedding(WORDS, 24), nn.ModuleList([nn.Conv1d(24, 8, k) for k in (2, 3, 4)]), nn.Linear(24, 3)

        def forward(self, ids):
            x = self.embedding(ids).transpose(1, 2)
            return self.out(torch.cat([F.relu(conv(x)).amax(2) for conv in self.convs], 1))
    return by_torch(path, Model(), lambda n=2, s=12: {"ids": torch.randint(0, WORDS, (n, s))}, {"ids": {0: "n", 1: "s"}}, OTHER, dynamo=True)


class Greedy(nn.Module):
    """Chooses a word after the other, until one ends the text."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(WORDS, 16), nn.Linear(32, 16), nn.Linear(16, WORDS)

    def forward(self, state: torch.Tensor):
        word = torch.zeros([state.shape[0]], dtype=torch.long)
        made = torch.zeros([state.shape[0], 0], dtype=torch.long)
        i = 0
        while i < 12 and bool((word != 7).any()):
            state = torch.tanh(self.cell(torch.cat([self.embedding(word), state], 1)))
            word = self.out(state).argmax(1)
            made = torch.cat([made, word.unsqueeze(1)], 1)
            i += 1
        return made, state


@export("torch, legacy")
def greedy_loop(path):
    return by_torch(path, torch.jit.script(Greedy()), lambda n=2: {"state": torch.randn(n, 16)}, {"state": {0: "n"}}, [{}, {"n": 3}], outputs=2)


class Pieces(nn.Module):
    """Works on as many rows as each text has words, in a loop."""

    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(WORDS, 16), nn.Linear(16, 8)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor):
        made = torch.jit.annotate(list[torch.Tensor], [])
        for i in range(ids.shape[0]):
            x = self.out(self.embedding(ids[i, :int(lengths[i])]))
            if x.shape[0] > 4:
                x = x - x.mean(0)
            made.append(x.amax(0))
        return torch.stack(made)


@export("torch, legacy")
def ragged_loop(path):
    def make(n=2, s=9):
        return {"ids": torch.randint(0, WORDS, (n, s)), "lengths": torch.tensor([s, 3, 6, 1][:n])}
    return by_torch(path, torch.jit.script(Pieces()), make, {"ids": {0: "n", 1: "s"}, "lengths": {0: "n"}}, [{}, {"n": 4, "s": 12}])
