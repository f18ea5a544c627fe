/* What the operating system MANGOS was to do for INGRES, and no more (1981 memorandum, 5.2 and 5.4).

   message: a buffer leaves one list and joins another, each with a head.
   task_switch: save the running process's state, take the next ready process, restore its state.
   Processes share their address space; the state is what a call has to keep, on the stack. */

struct buffer { struct buffer *next, *previous; };

static struct buffer owned = {&owned, &owned}, network = {&network, &network};

__attribute__((noinline)) void message(struct buffer *one, struct buffer *list)
{
    one->previous->next = one->next;
    one->next->previous = one->previous;
    one->next = list;
    one->previous = list->previous;
    list->previous->next = one;
    list->previous = one;
}

struct process { struct process *next; void *stack; };

struct process *running;
void task_switch(void);

__asm__(".globl task_switch\n"
        ".type task_switch, @function\n"
        "task_switch:\n"
        "push %rbp\n" "push %rbx\n" "push %r12\n" "push %r13\n" "push %r14\n" "push %r15\n"
        "mov running(%rip), %rax\n"
        "mov %rsp, 8(%rax)\n"
        "mov (%rax), %rax\n"
        "mov %rax, running(%rip)\n"
        "mov 8(%rax), %rsp\n"
        "pop %r15\n" "pop %r14\n" "pop %r13\n" "pop %r12\n" "pop %rbx\n" "pop %rbp\n"
        "ret\n"
        ".size task_switch, . - task_switch\n");

static struct process tasks[2];
static void *stack[4096];
static long turns;

static void work(void)
{
    for (;;) {
        turns++;
        task_switch();
    }
}

/* Its status is 0 if every switch came back, and every buffer arrived. */
int main(void)
{
    struct buffer one = {&owned, &owned};
    owned.next = owned.previous = &one;
    for (int round = 0; round < 1000; round++)
        message(&one, round % 2 ? &owned : &network);

    void **top = stack + 4000;
    *top = (void *) work; /* where the first switch returns to, above six registers */
    tasks[0].next = &tasks[1];
    tasks[1] = (struct process) {&tasks[0], top - 6};
    running = &tasks[0];
    for (int round = 0; round < 1000; round++)
        task_switch();
    return !(turns == 1000 && owned.next == &one && network.next == &network);
}
