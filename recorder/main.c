/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

int main(int argc, char **argv)
{
	return command_main(argc, argv);
}
